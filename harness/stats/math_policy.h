// Boost.Math policy of this layer: errors become NaN or infinity instead of exceptions, and double stays
// double (with long double planning takes nearly three times as long, for digits that nobody prints).
#pragma once
#include <boost/math/policies/policy.hpp>

namespace fsbl {

using NoThrow = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>,
    boost::math::policies::promote_double<false>>;

}  // namespace fsbl
