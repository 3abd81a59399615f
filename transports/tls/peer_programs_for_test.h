// For tests: TLS programs that know nothing of fsbl (openssl, nginx, gnutls) as processes beside one of our
// ends. Nothing here blocks: the test turns a program between the turns of its own end. Programs die with it.
#pragma once
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include "harness/core/file.h"
#include "harness/core/process.h"
#include "harness/core/random.h"
#include "transports/tls/raw_peer_for_test.h"

namespace fsbl::contract {

// Where a program lies; empty when this host lacks it. Servers are often not on an ordinary user's PATH.
inline std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders((path ? path : "") + std::string(":/usr/bin:/usr/sbin:/usr/local/sbin"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = folder + '/' + name; !folder.empty() && access(file.c_str(), X_OK) == 0)
      return file;
  return {};
}

// Every engine under TLS sessions, so that a new one is tested by being there.
inline std::vector<std::string> tls_engines() {
  std::vector<std::string> names;
  for (const Composition& composition : compositions())
    if (composition.session == "tls") names.push_back(composition.engine);
  return names;
}

// Lines of small letters that no program takes for a command (s_server: c, k, q, r where a read begins).
inline std::string letters(size_t size, uint64_t seed) {
  constexpr std::string_view kLetters = "abdefghijlmnop";
  std::string text(size, '\n');
  SplitMix64 random(seed);
  for (size_t i = 0; i + 1 < size; ++i)
    if (i % 800 != 799) text[i] = kLetters[random.below(kLetters.size())];
  return text;
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string received_by(End& end, FlowId flow = 0) {
  const auto& bytes = end[flow].received;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline size_t count_of(const std::string& what, const std::string& text) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

class Program {
 public:
  explicit Program(std::vector<std::string> argv) {
    int in[2], out[2], err[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);  // a pipe would send us SIGPIPE
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(err, O_CLOEXEC), 0);
    const UniqueFd their_in(in[0]), their_out(out[1]), their_err(err[1]);
    in_.reset(in[1]), out_.reset(out[0]), err_.reset(err[0]);
    for (int fd : {in_.get(), out_.get(), err_.get()}) EXPECT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    SpawnOptions options;
    options.argv = std::move(argv);
    options.environment = {"LC_ALL=C", "OPENSSL_CONF=/dev/null",
                           "GNUTLS_SYSTEM_PRIORITY_FILE=/dev/null"};  // not this host's
    options.fds = {{their_in.get(), 0}, {their_out.get(), 1}, {their_err.get(), 2}};
    auto child = spawn(options);
    EXPECT_TRUE(child) << child.error().message();
    if (child) child_ = std::move(*child);
  }

  // Writes what is left of `input`, reads what there is; false when nothing came and the program has ended.
  bool turn() {
    if (!input.empty())
      if (const ssize_t n = send(in_.get(), input.data(), std::min<size_t>(input.size(), 8192), MSG_NOSIGNAL);
          n > 0)
        input.erase(0, static_cast<size_t>(n));
    if (input.empty() && std::exchange(end_input_, false)) shutdown(in_.get(), SHUT_WR);
    const bool over = ended();  // asked first, so that its last words are read
    const bool news = take(out_, out) | take(err_, err);
    return news || !over;
  }
  bool ended() { return !child_.running() || child_.wait(0); }
  // The program has read all of `input`: what comes next is another read of its own.
  bool input_taken() const {
    int unread = 0;
    return input.empty() && ioctl(in_.get(), SIOCOUTQ, &unread) == 0 && unread == 0;
  }
  // End of file after what is left of `input`.
  void end_input() { end_input_ = true; }
  void kill() { child_.signal(SIGKILL); }
  // The last of what it said, for messages.
  std::string all() const { return "\nstdout: " + tail(out) + "\nstderr: " + tail(err); }
  bool says(const std::string& what) const {
    return out.find(what) != std::string::npos || err.find(what) != std::string::npos;
  }

  std::string input, out, err;

 private:
  static std::string tail(const std::string& text) {
    return text.size() > 1500 ? "…" + text.substr(text.size() - 1500) : text;
  }
  static bool take(const UniqueFd& fd, std::string& to) {
    char chunk[65536];
    const ssize_t n = read(fd.get(), chunk, sizeof chunk);
    if (n > 0) to.append(chunk, static_cast<size_t>(n));
    return n > 0;
  }

  UniqueFd in_, out_, err_;
  bool end_input_ = false;
  Child child_;
};

// As until(), but gives up two seconds after the program has ended: nobody else will answer then.
inline bool until_with(Program& program, std::initializer_list<End*> ends, const std::function<bool()>& done,
                       const std::function<void()>& also = {}) {
  std::optional<Nanos> grace;
  bool reached = false;
  const bool in_time = until(
      ends, [&] { return (reached = done()) || (grace && mono_now_ns() > *grace); },
      [&] {
        if (!program.turn() && !grace) grace = mono_now_ns() + 2 * kSecond;
        if (also) also();
      });
  return in_time && reached;
}

// A private folder (mode 0700) that is gone with its owner.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fsbl-peer-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr) << pattern;
    path_ = pattern;
  }
  PrivateFolder(const PrivateFolder&) = delete;
  ~PrivateFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + '/' + name; }
  void write(const std::string& name, const std::string& text) const {
    const auto written = write_file_atomic(file(name), text, 0600);
    EXPECT_TRUE(written) << written.error().message();
  }

 private:
  std::string path_;
};

// One engine, a good SVID for each role, and the files that a program wants them in.
class PeerPrograms : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    config.transport = {"tls", "none", "tls", GetParam()};
    if (const std::string why = why_not(config.transport); !why.empty()) GTEST_SKIP() << why;
    for (const auto& [program, package] : needed())
      if (find_program(program).empty())
        GTEST_SKIP() << "no program " << program << " on this host (package " << package << ')';
    authority.emplace(SvidAuthority::create("fsbl.test").value());
    secrets = make_secrets(config, *authority);
    for (Role role : kRoles) write_identity(name_of(role), secrets[of(role)]);
    folder.write("bundle.pem", authority->bundle_pem());
    // One that nobody here trusts, under the same names.
    strangers = make_secrets(config, SvidAuthority::create("fsbl.test").value());
    for (Role role : kRoles) write_identity("strange-" + name_of(role), strangers[of(role)]);
  }
  // {program, Debian package}
  virtual std::vector<std::pair<std::string, std::string>> needed() const { return {{"openssl", "openssl"}}; }

  static std::string name_of(Role role) { return std::string(to_text(role)); }
  void write_identity(const std::string& name, const Json& of_whom) const {
    folder.write(name + "-key.pem", of_whom["key_pem"].get<std::string>());
    folder.write(name + "-chain.pem", of_whom["chain_pem"].get<std::string>());
  }
  End our_client() const {
    return End(make_driver(config, Role::client, "127.0.0.1", secrets[of(Role::client)]));
  }
  End our_server() const {
    return End(make_driver(config, Role::server, "127.0.0.1", secrets[of(Role::server)]));
  }
  // It trusts everybody here, nobody trusts it.
  End our_strange_client() const {
    Json mixed = secrets[of(Role::client)];
    for (const char* key : {"key_pem", "chain_pem"}) mixed[key] = strangers[of(Role::client)][key];
    return End(make_driver(config, Role::client, "127.0.0.1", mixed));
  }

  // Opens flow number `flow` of our client; true when it is established.
  static bool open(End& client, Program& server, uint16_t port, FlowId flow = 0) {
    const auto opened = client.driver().open(1, port);
    EXPECT_TRUE(opened) << opened.error().message();
    EXPECT_TRUE(
        until_with(server, {&client}, [&] { return client[flow].established + client[flow].error > 0; }));
    EXPECT_EQ(client[flow].established, 1u) << client.driver().failure(flow) << server.all();
    return client[flow].established == 1;
  }
  static bool accept(End& server, Program& client, FlowId flow = 0) {
    EXPECT_TRUE(until_with(client, {&server}, [&] {
      return server[flow].established + server[flow].error > 0;
    })) << client.all();
    if (server[flow].error) ADD_FAILURE() << server.driver().failure(flow) << client.all();
    return server[flow].established == 1;
  }
  // The driver borrows the text until it is sent: it must live until the program has shown it.
  static void submit(End& end, const std::string& text, FlowId flow = 0) {
    EXPECT_NE(end.driver().submit(flow, bytes_of(text)), Submit::dead) << end.driver().failure(flow);
  }
  // Ours is over, one way or the other.
  static bool over(End& end, Program& program, FlowId flow = 0) {
    return until_with(program, {&end}, [&end, flow] { return end[flow].closed + end[flow].error > 0; });
  }

  PrivateFolder folder;
  CellConfig config;
  std::optional<SvidAuthority> authority;
  BothRoles<Json> secrets, strangers;
};

// A port that was free a moment ago, for programs that can't take a socket of ours.
inline uint16_t lately_free_port() {
  return Listener().port;
}

inline std::string engine_test_name(const testing::TestParamInfo<std::string>& info) {
  return test_name(info.param);
}

}  // namespace fsbl::contract
