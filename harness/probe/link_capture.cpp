// LinkCapture: an AF_PACKET socket that searches every frame of one link.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "harness/core/fd.h"
#include "harness/probe/host_probes.h"

namespace fsbl {
namespace {

constexpr size_t kFrameBytes = 1 << 20;       // above GSO_MAX_SIZE (8 * 65535): a super-packet is never cut
constexpr int kReceiveBufferBytes = 8 << 20;  // the kernel doubles it for its own accounting
constexpr int kFramesPerDrain = 4096;

}  // namespace

struct LinkCapture::State {
  UniqueFd fd;
  std::vector<char> frame = std::vector<char>(kFrameBytes);
  uint64_t frames = 0, matches = 0, dropped = 0;
};

LinkCapture::LinkCapture(std::unique_ptr<State> state) : state_(std::move(state)) {}
LinkCapture::LinkCapture(LinkCapture&&) noexcept = default;
LinkCapture::~LinkCapture() = default;

Expected<LinkCapture> LinkCapture::open(const std::string& link) {
  const std::string what = "capture on " + link;
  // Protocol 0 until bound: no frame of another link gets in.
  UniqueFd fd(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fault_errno(what, errno, "a packet socket needs CAP_NET_RAW");
  const unsigned index = if_nametoindex(link.c_str());
  if (index == 0) return fault_errno(what, errno, "is it in this network namespace?");

  // Beyond net.core.rmem_max only with CAP_NET_ADMIN; what remains too small shows up in dropped().
  if (setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBufferBytes, sizeof kReceiveBufferBytes) != 0)
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof kReceiveBufferBytes);

  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(index);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return fault_errno(what, errno);
  auto state = std::make_unique<State>();
  state->fd = std::move(fd);
  return LinkCapture(std::move(state));
}

int LinkCapture::fd() const {
  return state_->fd.get();
}

void LinkCapture::drain(std::string_view canary) {
  for (int i = 0; i < kFramesPerDrain; ++i) {
    const ssize_t size = ::recv(fd(), state_->frame.data(), state_->frame.size(), MSG_DONTWAIT);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0)
      return;  // EAGAIN: empty; ENETDOWN: told once, and frames may follow when the link is up again
    ++state_->frames;
    if (!canary.empty() &&
        memmem(state_->frame.data(), static_cast<size_t>(size), canary.data(), canary.size()) != nullptr)
      ++state_->matches;
  }
}

uint64_t LinkCapture::frames() const {
  return state_->frames;
}
uint64_t LinkCapture::matches() const {
  return state_->matches;
}

uint64_t LinkCapture::dropped() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  if (getsockopt(fd(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) state_->dropped += stats.tp_drops;
  return state_->dropped;  // the kernel resets its counter at each reading: ours is the sum
}

}  // namespace fsbl
