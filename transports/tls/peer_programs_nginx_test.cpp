// Our ends against nginx, over every record engine: nginx as an HTTPS server that asks for a certificate, and
// as a reverse proxy in front of our server.
#include "transports/tls/peer_programs_for_test.h"

namespace fsbl::contract {
namespace {

// One process in the foreground; everything that it writes lies in `folder`.
class Nginx {
 public:
  Nginx(const PrivateFolder& folder, const std::string& server_block) : folder_(folder) {
    std::filesystem::create_directories(folder.file("www"));
    // It can't take port 0: another one is tried when somebody was faster. Its pid file comes after its
    // sockets.
    for (int attempt = 0; attempt < 5 && !up_; ++attempt) {
      port_ = lately_free_port();
      std::filesystem::remove(folder.file("nginx.pid"));
      folder.write("nginx.conf", config(server_block));
      program_ = std::make_unique<Program>(std::vector<std::string>{
          find_program("nginx"), "-e", "stderr", "-p", folder.file("."), "-c", folder.file("nginx.conf")});
      up_ = until_with(*program_, {}, [&] { return !read_small(folder.file("nginx.pid")).empty(); });
      if (program_->says("unknown directive")) return;
    }
    EXPECT_TRUE(up_) << program_->all();
  }
  Program& program() { return *program_; }
  uint16_t port() const { return port_; }
  // Why it can't run here: a build of nginx may lack a module.
  std::string missing() const {
    return program_->says("unknown directive") ? "this host's nginx lacks a module: " + program_->err
                                               : std::string();
  }

 private:
  std::string config(const std::string& server_block) const {
    std::string text =
        "daemon off;\nmaster_process off;\npid FOLDER/nginx.pid;\nerror_log stderr notice;\n"
        "events { worker_connections 32; }\n"
        "http {\n  access_log off;\n  client_max_body_size 1m;\n  client_body_temp_path FOLDER/body;\n"
        "  proxy_temp_path FOLDER/proxy;\n  fastcgi_temp_path FOLDER/fastcgi;\n  uwsgi_temp_path "
        "FOLDER/uwsgi;\n"
        "  scgi_temp_path FOLDER/scgi;\n  server {\n" +
        server_block + "  }\n}\n";
    for (const auto& [name, value] : {std::pair{std::string("FOLDER"), folder_.file(".")},
                                      {std::string("LISTEN"), "127.0.0.1:" + std::to_string(port_)}})
      for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
        text.replace(at, name.size(), value);
    return text;
  }

  const PrivateFolder& folder_;
  std::unique_ptr<Program> program_;
  uint16_t port_ = 0;
  bool up_ = false;
};

class NginxPrograms : public PeerPrograms {
 protected:
  std::vector<std::pair<std::string, std::string>> needed() const override {
    return {{"nginx", "nginx-light"}};
  }

  Nginx https() const {
    return Nginx(
        folder,
        "    listen LISTEN ssl;\n    ssl_protocols TLSv1.3;\n    ssl_verify_client on;\n"
        "    ssl_certificate FOLDER/server-chain.pem;\n    ssl_certificate_key FOLDER/server-key.pem;\n"
        "    ssl_client_certificate FOLDER/bundle.pem;\n    ssl_session_tickets on;\n"
        "    root FOLDER/www;\n    location / { dav_methods PUT; }\n");
  }
  // Sends a request and waits for the whole answer; empty when the flow died.
  static std::string ask(End& client, Nginx& nginx, const std::string& request, FlowId flow = 0) {
    const size_t had = client[flow].received.size();
    submit(client, request, flow);
    EXPECT_TRUE(until_with(nginx.program(), {&client}, [&] {
      return client[flow].error || client[flow].closed || complete(received_by(client, flow).substr(had));
    })) << nginx.program().all();
    return received_by(client, flow).substr(had);
  }
  static size_t content_length(const std::string& head) {
    const size_t at = head.find("Content-Length: ");
    return at == std::string::npos ? 0 : static_cast<size_t>(std::stoul(head.substr(at + 16)));
  }
  static bool complete(const std::string& message) {
    const size_t head = message.find("\r\n\r\n");
    return head != std::string::npos &&
           message.size() >= head + 4 + content_length(message.substr(0, head + 4));
  }
  static std::string body_of(const std::string& message) {
    return message.substr(message.find("\r\n\r\n") + 4);
  }
  static std::string head(const std::string& line, const std::string& fields = "") {
    return line + " HTTP/1.1\r\nHost: server\r\n" + fields + "\r\n";
  }
};

TEST_P(NginxPrograms, TheServerKeepsAndGivesBackWhatOurClientSends) {
  for (const char* cipher :
       {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"}) {
    SCOPED_TRACE(cipher);
    config.tls.cipher = cipher;
    Nginx nginx = https();
    if (const std::string why = nginx.missing(); !why.empty()) GTEST_SKIP() << why;
    End client = our_client();
    ASSERT_TRUE(open(client, nginx.program(), nginx.port()));
    EXPECT_EQ(client.driver().report(0).handshake["cipher"], cipher);
    EXPECT_EQ(client.driver().report(0).handshake["peer_id"], "spiffe://fsbl.test/worker/server");
    for (size_t size : {1, 20'000, 300'000}) {
      SCOPED_TRACE(size);
      const std::string text = letters(size, size), name = '/' + std::string(cipher) + std::to_string(size);
      const std::string put =
          ask(client, nginx, head("PUT " + name, "Content-Length: " + std::to_string(size) + "\r\n") + text);
      EXPECT_TRUE(put.starts_with("HTTP/1.1 201 "))
          << put << client.driver().failure(0) << nginx.program().all();
      const std::string got = ask(client, nginx, head("GET " + name));
      EXPECT_TRUE(got.starts_with("HTTP/1.1 200 ")) << got.substr(0, 200);
      EXPECT_TRUE(body_of(got) == text) << "something else came back";
      if (HasFailure()) return;
    }
    // It closes properly when it is asked to.
    ask(client, nginx, head("GET /nothing", "Connection: close\r\n"));
    ASSERT_TRUE(over(client, nginx.program()));
    EXPECT_EQ(client[0].closed, 1u) << client.driver().failure(0);
  }
}

TEST_P(NginxPrograms, TheServersTicketsAreUsedWhenResumptionIsOnAndReadOverWhenItIsOff) {
  for (bool resumption : {false, true}) {
    SCOPED_TRACE(resumption ? "resumption on" : "resumption off");
    config.tls.resumption = resumption;
    Nginx nginx = https();
    if (const std::string why = nginx.missing(); !why.empty()) GTEST_SKIP() << why;
    End client = our_client();
    for (FlowId id = 0; id < 3; ++id) {
      ASSERT_TRUE(open(client, nginx.program(), nginx.port(), id));
      EXPECT_EQ(client.driver().report(id).handshake["resumed"], resumption && id > 0) << id;
      EXPECT_TRUE(ask(client, nginx, head("GET /nothing"), id).starts_with("HTTP/1.1 404 "));
    }
  }
}

TEST_P(NginxPrograms, AStrangersCertificateIsAnsweredByABadRequest) {
  Nginx nginx = https();
  if (const std::string why = nginx.missing(); !why.empty()) GTEST_SKIP() << why;
  End client = our_strange_client();
  ASSERT_TRUE(open(client, nginx.program(), nginx.port()));  // nginx finishes the handshake all the same
  const std::string answer = ask(client, nginx, head("GET /"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400 ")) << answer;
  EXPECT_NE(answer.find("SSL certificate error"), std::string::npos) << answer;
  ASSERT_TRUE(over(client, nginx.program()));
  EXPECT_EQ(client[0].closed, 1u) << client.driver().failure(0);
}

TEST_P(NginxPrograms, AServerThatIsKilledIsAnError) {
  Nginx nginx = https();
  if (const std::string why = nginx.missing(); !why.empty()) GTEST_SKIP() << why;
  End client = our_client();
  ASSERT_TRUE(open(client, nginx.program(), nginx.port()));
  EXPECT_TRUE(ask(client, nginx, head("GET /nothing")).starts_with("HTTP/1.1 404 "));
  nginx.program().kill();
  ASSERT_TRUE(over(client, nginx.program()));
  EXPECT_EQ(client[0].closed, 0u);
  EXPECT_NE(client.driver().failure(0), "");
}

// --- nginx as the client ---

// One plain HTTP request, as a browser in front of the proxy makes it.
class PlainRequest {
 public:
  PlainRequest(uint16_t port, std::string request) : fd_(connect_to(port)), rest_(std::move(request)) {
    EXPECT_EQ(fcntl(fd_.get(), F_SETFL, O_NONBLOCK), 0);
  }
  void turn() {
    if (const ssize_t n = send(fd_.get(), rest_.data(), rest_.size(), MSG_NOSIGNAL); n > 0)
      rest_.erase(0, static_cast<size_t>(n));
    char chunk[65536];
    if (const ssize_t n = recv(fd_.get(), chunk, sizeof chunk, 0); n > 0)
      answer.append(chunk, static_cast<size_t>(n));
  }
  std::string answer;

 private:
  UniqueFd fd_;
  std::string rest_;
};

class NginxProxy : public NginxPrograms {
 protected:
  Nginx proxy_to(uint16_t port, const std::string& identity) const {
    return Nginx(folder, "    listen LISTEN;\n    location / {\n      proxy_pass https://127.0.0.1:" +
                             std::to_string(port) +
                             ";\n"
                             "      proxy_ssl_protocols TLSv1.3;\n      proxy_ssl_certificate FOLDER/" +
                             identity +
                             "-chain.pem;\n"
                             "      proxy_ssl_certificate_key FOLDER/" +
                             identity + "-key.pem;\n    }\n");
  }
};

TEST_P(NginxProxy, PassesWhatGoesBothWaysToOurServer) {
  constexpr size_t kSizes[] = {1, 20'000, 300'000};
  for (bool resumption : {false, true}) {
    SCOPED_TRACE(resumption ? "resumption on" : "resumption off");
    config.tls.resumption = resumption;
    End server = our_server();
    Nginx nginx = proxy_to(server.driver().listen(3, 0).value(), "client");
    for (FlowId id = 0; id < 3; ++id) {  // a flow for each request
      const size_t size = kSizes[id];
      SCOPED_TRACE(size);
      const std::string up = letters(size, 2 * id), down = letters(size, 2 * id + 1);
      PlainRequest request(nginx.port(),
                           head("POST /", "Content-Length: " + std::to_string(size) + "\r\n") + up);
      ASSERT_TRUE(until_with(
          nginx.program(), {&server}, [&] { return server[id].error || complete(received_by(server, id)); },
          [&] { request.turn(); }))
          << nginx.program().all();
      ASSERT_EQ(server[id].error, 0u) << server.driver().failure(id) << nginx.program().all();
      EXPECT_TRUE(received_by(server, id).starts_with("POST / HTTP/1.0\r\n"));
      EXPECT_TRUE(body_of(received_by(server, id)) == up) << "something else came";
      const Json handshake = server.driver().report(id).handshake;
      EXPECT_EQ(handshake["peer_id"], "spiffe://fsbl.test/worker/client");
      EXPECT_EQ(handshake["resumed"], resumption && id > 0) << id;

      const std::string answer =
          "HTTP/1.0 200 OK\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n" + down;
      submit(server, answer, id);
      ASSERT_TRUE(until_with(
          nginx.program(), {&server},
          [&] { return complete(request.answer) && server[id].closed + server[id].error > 0; },
          [&] { request.turn(); }))
          << request.answer.substr(0, 300) << nginx.program().all();
      EXPECT_TRUE(body_of(request.answer) == down) << "something else went";
      EXPECT_EQ(server[id].closed, 1u) << server.driver().failure(id);
    }
  }
}

TEST_P(NginxProxy, IsRefusedWithAStrangersCertificate) {
  End server = our_server();
  Nginx nginx = proxy_to(server.driver().listen(1, 0).value(), "strange-client");
  PlainRequest request(nginx.port(), head("GET /"));
  ASSERT_TRUE(until_with(
      nginx.program(), {&server}, [&] { return server[0].error > 0 && complete(request.answer); },
      [&] { request.turn(); }))
      << nginx.program().all();
  EXPECT_EQ(server[0].established, 0u);
  EXPECT_EQ(server.driver().refusal(0)["by"], "us");
  EXPECT_TRUE(request.answer.starts_with("HTTP/1.1 502 ")) << request.answer;
  EXPECT_TRUE(nginx.program().says("alert")) << nginx.program().err;
}

INSTANTIATE_TEST_SUITE_P(All, NginxPrograms, testing::ValuesIn(tls_engines()), engine_test_name);
INSTANTIATE_TEST_SUITE_P(All, NginxProxy, testing::ValuesIn(tls_engines()), engine_test_name);

}  // namespace
}  // namespace fsbl::contract
