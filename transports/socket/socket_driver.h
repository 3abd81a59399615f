// The TCP driver: epoll (edge-triggered), or a spin on the sockets with `wait: busy`; with one flow and
// `wait: block` it waits in recv() itself, one system call a turn.
#pragma once
#include <memory>
#include <vector>

#include "harness/core/fd.h"
#include "harness/transport/driver.h"
#include "transports/socket/stream.h"

namespace fsbl {

class SocketDriver final : public Driver {
 public:
  // `streams` null: bytes go as they are (session plain).
  static Expected<std::unique_ptr<Driver>> create(const DriverContext& context, std::unique_ptr<StreamFactory> streams);
  ~SocketDriver() override;

  Expected<uint16_t> listen(uint32_t expected_flows, uint16_t port) override;
  Expected<> open(uint32_t count, uint16_t port) override;
  Submit submit(FlowId flow, std::span<const std::byte> data) noexcept override;
  size_t poll(std::span<Event> events, Nanos deadline) noexcept override;
  std::span<const std::span<const std::byte>> peek(FlowId flow) noexcept override;
  void finish(FlowId flow) noexcept override;
  WireOffsets wire(FlowId flow) const noexcept override;
  uint32_t flows() const override { return static_cast<uint32_t>(flows_.size()); }
  FlowReport report(FlowId flow) const override;
  Json refusal(FlowId flow) const override;
  std::string failure(FlowId flow) const override;
  int socket(FlowId flow) const override;
  Json engine() const override;

 private:
  struct Flow;
  struct WireBuffer;
  struct Sealing;
  SocketDriver(const DriverContext& context, std::unique_ptr<StreamFactory> streams);
  Expected<> add_flow(UniqueFd fd, bool connecting);
  bool watch(Flow& flow, FlowId id) noexcept;
  void accept_flows() noexcept;
  void on_socket_event(FlowId id, uint32_t mask) noexcept;
  void advance_handshake(FlowId id) noexcept;
  void continue_sending(FlowId id) noexcept;
  bool send_pending(Flow& flow) noexcept;
  bool send_plain(Flow& flow) noexcept;
  bool seal_and_send(Flow& flow) noexcept;
  ssize_t send_some(Flow& flow, std::span<const std::byte> bytes) noexcept;
  bool send_backlog(Flow& flow) noexcept;
  bool send_wire(Flow& flow, WireBuffer& wire) noexcept;
  bool send_control(Flow& flow, std::span<const std::byte> bytes) noexcept;
  bool gather(FlowId id) noexcept;
  void send_gathered() noexcept;
  void settle_sent(FlowId id) noexcept;
  void close_direction(Flow& flow) noexcept;
  bool wait_in_recv(Nanos deadline) noexcept;
  void look(Nanos wait) noexcept;
  void drop_drained() noexcept;
  size_t announce(std::span<Event> events) noexcept;
  size_t carry_to_front(Flow& flow) noexcept;
  size_t receive(FlowId id) noexcept;
  void open_received(FlowId id, size_t size) noexcept;
  void die(FlowId id, const char* what, int error_number) noexcept;
  void push(FlowId id, EventKind kind) noexcept;
  void make_ready(FlowId id) noexcept;

  DriverContext context_;
  std::unique_ptr<StreamFactory> streams_;
  bool busy_;
  UniqueFd epoll_, listener_;
  uint32_t expected_flows_ = 0;
  std::vector<std::unique_ptr<Flow>> flows_;
  // Events found while doing something else, and flows whose lent buffer is free again; capacity reserved.
  std::vector<Event> queue_;        // established, error
  std::vector<FlowId> sent_;
  uint32_t unlooked_ = 0;           // turns of poll() since the sockets were looked at
  std::vector<FlowId> ready_;       // flows that may have more bytes without a new edge; capacity reserved
  std::vector<std::byte> wire_in_;  // shared by the thread's flows
  Pieces pieces_;                   // of what was peeked last; capacity reserved
  std::unique_ptr<Sealing> turns_[2], gathering_;
  std::unique_ptr<std::byte[]> control_;   // for alerts, KeyUpdates and handshake messages
  size_t received_ = 0;             // bytes that wait_in_recv() left in wire_in_, what was carried before them
  FlowId received_flow_ = 0;
};

}  // namespace fsbl
