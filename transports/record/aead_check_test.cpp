// The check that a cipher back end must pass before it is trusted with a record: EVP passes, and each way of
// being wrong is found and named.
#include <gtest/gtest.h>

#include <cstring>

#include "transports/record/record_pair_for_test.h"

namespace fsbl::records {
namespace {

class AeadChecks : public testing::TestWithParam<Cipher> {
 protected:
  // What the check says of EVP with these hooks; empty: all is well.
  std::string check(HookedAead::Hooks hooks) {
    HookedAead aead(GetParam(), std::make_shared<HookedAead::Hooks>(std::move(hooks)));
    const auto good = check_aead(aead, GetParam());
    return good ? "" : good.error().message();
  }
};
INSTANTIATE_TEST_SUITE_P(All, AeadChecks, testing::ValuesIn(kCiphers), cipher_name);

std::byte* body(const RecordJob& job) {
  return job.record + kRecordHeaderBytes;
}
bool has(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

TEST_P(AeadChecks, EvpPasses) {
  EXPECT_EQ(check({}), "");
  const auto evp = make_evp(GetParam());
  for (int i = 0; i < 3; ++i) {  // it leaves nothing behind
    const auto good = check_aead(*evp, GetParam());
    EXPECT_TRUE(good) << good.error().message();
  }
  std::mt19937_64 random(1);
  EXPECT_EQ(*evp->add_key(random_blob(random, key_bytes(GetParam())), KeyUse::seal) < 8,
            true);  // keys were dropped
}

TEST_P(AeadChecks, ANullCipherFails) {
  HookedAead::Hooks hooks;
  hooks.before = [](RecordJob& job, KeyUse use) {
    if (use == KeyUse::seal) {
      if (job.bytes) std::memcpy(body(job), job.plain, job.bytes);
      body(job)[job.bytes] = static_cast<std::byte>(job.type);
      std::memset(body(job) + job.bytes + 1, 0, kTagBytes);
    }
    job.state = JobState::done;
    return false;
  };
  const std::string why = check(hooks);
  EXPECT_TRUE(has(why, "known answer") && has(why, "sealed to something else")) << why;
}

TEST_P(AeadChecks, OneThatIgnoresTagsFails) {
  HookedAead::Hooks hooks;
  hooks.after = [](RecordJob& job, KeyUse) { job.state = JobState::done; };
  const std::string why = check(hooks);
  EXPECT_TRUE(has(why, "opens although it was tampered with")) << why;
}

TEST_P(AeadChecks, OneThatManglesTheLastByteOfWholeBlocksFails) {
  HookedAead::Hooks seals;
  seals.after = [](RecordJob& job, KeyUse use) {
    if (use == KeyUse::seal && job.bytes > 0 && job.bytes % 16 == 0) body(job)[job.bytes - 1] ^= std::byte{1};
  };
  std::string why = check(seals);
  EXPECT_TRUE(has(why, "a record of 16 bytes") &&
              has(why, "sealed to something else than OpenSSL seals it to"))
      << why;
  HookedAead::Hooks opens;
  opens.after = [](RecordJob& job, KeyUse use) {
    const size_t bytes = use == KeyUse::open ? job.bytes - kTagBytes - 1 : 0;
    if (bytes > 0 && bytes % 16 == 0) body(job)[bytes - 1] ^= std::byte{1};
  };
  why = check(opens);
  EXPECT_TRUE(has(why, "a record of") && has(why, "does not open to its plaintext")) << why;
}

TEST_P(AeadChecks, OneThatIgnoresTheHeaderFails) {
  std::array<std::byte, kRecordHeaderBytes> header{};
  const auto swap = [&](std::array<std::byte, kRecordHeaderBytes> other, RecordJob& job) {
    std::memcpy(header.data(), job.record, header.size());
    std::memcpy(job.record, other.data(), other.size());
  };
  const auto swap_back = [&](RecordJob& job, KeyUse) {
    std::memcpy(job.record, header.data(), header.size());
  };
  HookedAead::Hooks both;
  both.before = [&](RecordJob& job, KeyUse) {
    swap({}, job);
    return true;
  };
  both.after = swap_back;
  std::string why = check(both);
  EXPECT_TRUE(has(why, "known answer") && has(why, "sealed to something else")) << why;
  // Takes the header that ought to be there for the one that is.
  HookedAead::Hooks opens;
  opens.before = [&](RecordJob& job, KeyUse) {
    const size_t behind = (static_cast<size_t>(job.record[3]) << 8 | static_cast<size_t>(job.record[4]));
    std::array<std::byte, kRecordHeaderBytes> right{};
    std::memcpy(right.data(), job.record, right.size());
    if (behind != job.bytes && job.type == 0) {
      right[3] = static_cast<std::byte>(job.bytes >> 8);
      right[4] = static_cast<std::byte>(job.bytes);
    }
    swap(right, job);
    return true;
  };
  opens.after = swap_back;
  why = check(opens);
  EXPECT_TRUE(has(why, "opens although it was tampered with")) << why;
}

TEST_P(AeadChecks, OneThatSealsRightAndOpensWrongFails) {
  HookedAead::Hooks hooks;
  hooks.after = [](RecordJob& job, KeyUse use) {
    if (use == KeyUse::open) body(job)[0] ^= std::byte{1};
  };
  std::string why = check(hooks);
  EXPECT_TRUE(has(why, "known answer") && has(why, "does not open to its plaintext")) << why;
  hooks.after = [](RecordJob& job, KeyUse use) {  // or refuses everything
    if (use == KeyUse::open) job.state = JobState::failed;
  };
  why = check(hooks);
  EXPECT_TRUE(has(why, "does not open to its plaintext")) << why;
  hooks.after = [](RecordJob& job, KeyUse use) {  // or long ones only
    if (use == KeyUse::open && job.bytes > 16384) job.state = JobState::failed;
  };
  why = check(hooks);
  EXPECT_TRUE(has(why, "a record of 16384 bytes") && has(why, "does not open to its plaintext")) << why;
}

TEST_P(AeadChecks, ADeadOneFails) {
  HookedAead::Hooks hooks;
  for (JobState state : {JobState::failed, JobState::started}) {
    hooks.before = [state](RecordJob& job, KeyUse) {
      job.state = state;
      return false;
    };
    const std::string why = check(hooks);
    EXPECT_TRUE(has(why, "known answer") && has(why, "not sealed")) << why;
  }
  int left = 10;  // or dies at it
  hooks.before = [&](RecordJob& job, KeyUse) {
    if (left-- > 0) return true;
    job.state = JobState::failed;
    return false;
  };
  std::string why = check(hooks);
  EXPECT_TRUE(has(why, "a record of") && has(why, "not sealed")) << why;
  HookedAead::Hooks no_keys;
  no_keys.keys = 1;
  why = check(no_keys);
  EXPECT_TRUE(has(why, "full")) << why;
}

TEST_P(AeadChecks, OneThatForgetsTheContentTypeOrTheNonceFails) {
  HookedAead::Hooks type;
  type.before = [](RecordJob& job, KeyUse use) {
    if (use == KeyUse::seal) job.type = 22;
    return true;
  };
  EXPECT_TRUE(has(check(type), "sealed to something else"));
  HookedAead::Hooks nonce;
  nonce.before = [](RecordJob& job, KeyUse) {
    job.nonce.back() = std::byte{};
    return true;
  };
  EXPECT_TRUE(has(check(nonce), "sealed to something else"));
}

}  // namespace
}  // namespace fsbl::records
