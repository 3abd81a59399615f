#include "harness/load/window.h"

#include <linux/tcp.h>  // the kernel's tcp_info is longer than glibc's
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include "harness/stats/interval.h"

namespace fsbl {
namespace {

uint64_t thread_cpu_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

bool tcp_info_of(const Driver& driver, FlowId flow, tcp_info& info) noexcept {
  const int fd = driver.socket(flow);
  socklen_t size = sizeof info;
  return fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
}

}  // namespace

void add_flow_totals(const Driver& driver, FlowId flow, ThreadReading& reading) {
  const WireOffsets wire = driver.wire(flow);
  const FlowReport report = driver.report(flow);
  reading.wire_out += wire.out;
  reading.wire_in += wire.in;
  reading.records_out += report.records_out;
  reading.records_in += report.records_in;
  reading.key_updates_out += report.key_updates_out;
  reading.key_updates_in += report.key_updates_in;
  if (tcp_info info{}; tcp_info_of(driver, flow, info)) reading.retransmitted_bytes += info.tcpi_bytes_retrans;
}

uint64_t Window::retransmits() const noexcept {
  uint64_t sum = 0;
  tcp_info info{};
  for (FlowId flow = 0; flow < driver_.flows(); ++flow)
    if (tcp_info_of(driver_, flow, info)) sum += info.tcpi_total_retrans;
  return sum;
}

void Window::open(Nanos now) noexcept {
  phase_ = Phase::inside;
  reading_.window_from = now;
  sent_at_open_ = reading_.sent_bytes;
  received_at_open_ = reading_.received_bytes;
  retransmits_at_open_ = retransmits();
  cpu_at_open_ = thread_cpu_ns();
}

void Window::close(Nanos now) noexcept {
  reading_.window_cpu_ns = thread_cpu_ns() - cpu_at_open_;
  phase_ = Phase::after;
  reading_.window_to = now;
  reading_.window_sent_bytes = reading_.sent_bytes - sent_at_open_;
  reading_.window_received_bytes = reading_.received_bytes - received_at_open_;
  summarise_tcp();
}

void Window::summarise_tcp() noexcept {
  try {
    std::vector<double> rtt, cwnd, mss;
    tcp_info info{};
    for (FlowId flow = 0; flow < driver_.flows(); ++flow) {
      if (!tcp_info_of(driver_, flow, info)) continue;
      rtt.push_back(info.tcpi_rtt);
      cwnd.push_back(info.tcpi_snd_cwnd);
      mss.push_back(info.tcpi_snd_mss);
    }
    if (rtt.empty()) return;
    TcpSummary& tcp = reading_.tcp;
    tcp.present = true;
    tcp.retransmits = retransmits() - retransmits_at_open_;
    tcp.rtt_us = median(rtt);
    tcp.cwnd_segments = median(cwnd);
    tcp.mss_bytes = median(mss);
    int bytes = 0;
    socklen_t size = sizeof bytes;
    if (getsockopt(driver_.socket(0), SOL_SOCKET, SO_SNDBUF, &bytes, &size) == 0) tcp.send_buffer_bytes = bytes;
    char name[32] = {};
    size = sizeof name - 1;
    if (getsockopt(driver_.socket(0), IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0) tcp.congestion = name;
  } catch (...) {
  }
}

}  // namespace fsbl
