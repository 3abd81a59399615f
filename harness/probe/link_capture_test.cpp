// The packet socket that looks for the canary, on the loopback device of a namespace of its own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>

#include "harness/core/fd.h"
#include "harness/probe/host_probes.h"

namespace fsbl {
namespace {

constexpr std::string_view kCanary = "fsbl-canary-5e1f0a";

// A UDP socket bound to loopback that sends to itself, so that no ICMP error adds frames.
class UdpToSelf {
 public:
  UdpToSelf() : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    ok_ = bind(fd_.get(), reinterpret_cast<sockaddr*>(&address_), size) == 0 &&
          getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address_), &size) == 0;
  }
  bool ok() const { return ok_; }
  bool send(std::string_view bytes) {
    return sendto(fd_.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&address_),
                  sizeof address_) == static_cast<ssize_t>(bytes.size());
  }

 private:
  UniqueFd fd_;
  sockaddr_in address_{};
  bool ok_ = false;
};

bool bring_up_loopback() {
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP;
  return ioctl(fd.get(), SIOCSIFFLAGS, &request) == 0;
}

// Drains until `done`, or until nothing has come for a second (a give-up bound: the checks decide).
void drain_until(LinkCapture& capture, const std::function<bool()>& done) {
  while (!done()) {
    pollfd wait{capture.fd(), POLLIN, 0};
    if (poll(&wait, 1, 1000) <= 0) return;
    capture.drain(kCanary);
  }
}

// Runs `test` in a thread with a network namespace of its own; false when this host does not allow that.
bool in_own_namespace(const std::function<void()>& test) {
  bool possible = false;
  std::thread([&] {
    possible = unshare(CLONE_NEWNET) == 0 && bring_up_loopback();
    if (possible) test();
  }).join();
  return possible;
}

#define IN_OWN_NAMESPACE(...) \
  if (!in_own_namespace(__VA_ARGS__)) GTEST_SKIP() << "unshare(CLONE_NEWNET): needs CAP_SYS_ADMIN"

// On loopback each datagram is two frames: going out and coming in.
TEST(LinkCapture, CountsTheCanaryWhereverItStandsAndNothingElse) {
  IN_OWN_NAMESPACE([] {
    auto capture = LinkCapture::open("lo");
    ASSERT_TRUE(capture) << capture.error().message();
    UdpToSelf udp;
    ASSERT_TRUE(udp.ok());
    const std::string canary(kCanary);
    std::string altered = canary;
    altered.back() ^= 1;
    ASSERT_TRUE(udp.send("nothing to see"));
    ASSERT_TRUE(udp.send(altered));
    ASSERT_TRUE(udp.send(canary.substr(0, 9)));  // split over two datagrams
    ASSERT_TRUE(udp.send(canary.substr(9)));
    drain_until(*capture, [&] { return capture->frames() >= 8; });
    EXPECT_EQ(capture->frames(), 8u);
    EXPECT_EQ(capture->matches(), 0u);
    ASSERT_TRUE(udp.send(canary));
    ASSERT_TRUE(udp.send(std::string(60000, 'x') + canary));        // at the end of a large frame
    ASSERT_TRUE(udp.send(std::string(3, '\0') + canary + canary));  // twice in one frame is one match
    drain_until(*capture, [&] { return capture->frames() >= 14; });
    EXPECT_EQ(capture->frames(), 14u);
    EXPECT_EQ(capture->matches(), 6u);
    EXPECT_EQ(capture->dropped(), 0u);
  });
}

TEST(LinkCapture, EmptyCanaryMatchesNothing) {
  IN_OWN_NAMESPACE([] {
    auto capture = LinkCapture::open("lo");
    ASSERT_TRUE(capture) << capture.error().message();
    UdpToSelf udp;
    ASSERT_TRUE(udp.send("x"));
    while (capture->frames() < 2) capture->drain("");
    EXPECT_EQ(capture->matches(), 0u);
  });
}

TEST(LinkCapture, FramesAndDropsAddUpToWhatWasSent) {
  IN_OWN_NAMESPACE([] {
    auto opened = LinkCapture::open("lo");
    ASSERT_TRUE(opened) << opened.error().message();
    LinkCapture capture = std::move(*opened);
    UdpToSelf udp;
    const std::string large(60000, 'x');
    constexpr uint64_t kSent = 1000;  // several times the receive buffer
    for (uint64_t i = 0; i < kSent; ++i) ASSERT_TRUE(udp.send(large));
    drain_until(capture, [&] { return capture.frames() + capture.dropped() >= 2 * kSent; });
    EXPECT_GT(capture.dropped(), 0u);
    EXPECT_GT(capture.frames(), 0u);
    EXPECT_EQ(capture.frames() + capture.dropped(), 2 * kSent);
  });
}

TEST(LinkCapture, AbsentLinkIsNamed) {
  const auto capture = LinkCapture::open("fsbl-no-link");
  ASSERT_FALSE(capture);
  EXPECT_NE(capture.error().message().find("fsbl-no-link"), std::string::npos);
}

}  // namespace
}  // namespace fsbl
