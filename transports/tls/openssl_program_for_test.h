// For tests: `openssl s_server` and `s_client` as the peer of one of our ends.
#pragma once
#include "transports/tls/peer_programs_for_test.h"

namespace fsbl::contract {

using Arguments = std::vector<std::string>;

class OpensslPeer : public PeerPrograms {
 protected:
  // `identity`: whose certificate it shows, "client" or "server", "strange-…" one that we don't trust.
  Program s_server(const Arguments& more, const std::string& identity = "server") const {
    Arguments argv = {find_program("openssl"), "s_server", "-accept", "127.0.0.1:0", "-Verify", "1"};
    return start(std::move(argv), more, identity);
  }
  Program s_client(uint16_t port, const Arguments& more, const std::string& identity = "client") const {
    Arguments argv = {find_program("openssl"), "s_client", "-connect", "127.0.0.1:" + std::to_string(port)};
    return start(std::move(argv), more, identity);
  }
  // Where s_server listens, once it says so.
  static uint16_t port_of(Program& server) {
    const std::string kAccept = "ACCEPT 127.0.0.1:";
    const auto line = [&] { return server.out.find(kAccept); };
    const bool there = until_with(server, {}, [&] {
      return line() != std::string::npos && server.out.find('\n', line()) != std::string::npos;
    });
    EXPECT_TRUE(there) << server.all();
    return there ? static_cast<uint16_t>(std::stoi(server.out.substr(line() + kAccept.size()))) : 0;
  }
  // What the program received since `mark`, without what it says of post-handshake messages.
  static std::string printed(const Program& program, size_t mark) {
    std::string text = program.out.substr(std::min(mark, program.out.size()));
    for (const std::string& noise :
         {std::string("read R BLOCK\n"), std::string("Read BLOCK\n"), std::string("SSL_do_handshake -> 1\n")})
      for (size_t at = text.find(noise); at != std::string::npos; at = text.find(noise, at))
        text.erase(at, noise.size());
    return text;
  }

  // `size` bytes each way, at the same time; both must come out as they went in, and nothing else.
  static void exchange(End& end, Program& program, size_t size, uint64_t seed) {
    SCOPED_TRACE(std::to_string(size) + " bytes each way");
    const std::string to_program = letters(size, 2 * seed), to_us = letters(size, 2 * seed + 1);
    const size_t had = end[0].received.size(), mark = program.out.size();
    program.input += to_us;
    submit(end, to_program);
    const bool first = had == 0;  // before, the program may still be telling of the handshake
    const auto all_there = [&] {
      if (end[0].error) return true;
      if (end[0].received.size() < had + size) return false;
      const std::string text = printed(program, mark);
      return first ? text.find(to_program) != std::string::npos : text == to_program;
    };
    EXPECT_TRUE(until_with(program, {&end}, all_there))
        << "the program has " << printed(program, mark).size() << " bytes, we have "
        << end[0].received.size() - had << "; stderr: " << program.err;
    EXPECT_EQ(end[0].error, 0u) << end.driver().failure(0);
    EXPECT_TRUE(received_by(end).substr(had) == to_us) << "something else came";
  }
  static void exchange_all_sizes(End& end, Program& program) {
    for (size_t size : {20'000, 1, 300'000, 1}) {
      exchange(end, program, size, size);
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  Program start(Arguments argv, const Arguments& more, const std::string& identity) const {
    for (const std::string& argument :
         {std::string("-tls1_3"), std::string("-cert"), folder.file(identity + "-chain.pem"),
          std::string("-key"), folder.file(identity + "-key.pem"), std::string("-CAfile"),
          folder.file("bundle.pem"), std::string("-verify_return_error")})
      argv.push_back(argument);
    argv.insert(argv.end(), more.begin(), more.end());
    return Program(std::move(argv));
  }
};

}  // namespace fsbl::contract
