// Goal: a cell's configuration survives the way to the agent, and nothing else gets in.
#include <gtest/gtest.h>

#include <functional>

#include "harness/scenario/load.h"

namespace fsbl {
namespace {

CellConfig full_config() {
  const auto plan = plan_text(R"(
id: t/x
transports: [{tunnel: wireguard, session: tls}]
load: {shape: stream, payload: 4KiB, reply: 1KiB, streams: 7, direction: down, wait: busy, verify: full}
phases: {warm_up: 1ms, measure: 1s, cool_down: 0, min_samples: 299, max_duration: 2s}
testbed: {mtu: 9000, ip: 6, offloads: {tso: on, gro: off}, sysctls: {client: {net.core.somaxconn: 9}}, numa: {server: 1}}
placement: {client: [3, 1], server: [0], tunnel: [2], crypto_client: [4]}
tls: {cipher: TLS_AES_128_GCM_SHA256, group: P-384, key: ed25519, resumption: on, ttl: 1min, rekey_records: 5, client_svid: none}
crypto: {device: crypto_qat}
worker: {binary: /x, environment: {A: b}}
probes: [cpu]
)",
                              "x.yaml", {});
  EXPECT_TRUE(plan) << plan.error().message();
  return plan->cells[0].config;
}

TEST(CellJson, IsIntegersWithUnitsInTheirNames) {
  EXPECT_EQ(
      dump_json(to_json(full_config())),
      R"({"transport":{"name":"wireguard+tls+openssl","tunnel":"wireguard","session":"tls","engine":"openssl"},)"
      R"("load":{"shape":"stream","payload_bytes":4096,"reply_bytes":1024,"streams":7,"direction":"down",)"
      R"("wait":"busy","verify":"full"},)"
      R"("phases":{"warm_up_ns":1000000,"measure_ns":1000000000,"cool_down_ns":0,"min_samples":299,)"
      R"("max_duration_ns":2000000000},)"
      R"("testbed":{"kind":"netns","mtu":9000,"ip":"6","offloads":{"tso":true,"gro":false,"checksum":null},)"
      R"("sysctls":{"client":{"net.core.somaxconn":"9"},"server":{}},"numa":{"client":null,"server":1}},)"
      R"("placement":{"client":[3,1],"server":[0],"tunnel":[2],"crypto_client":[4],"crypto_server":[]},)"
      R"("tls":{"cipher":"TLS_AES_128_GCM_SHA256","group":"P-384","key":"ed25519","resumption":true,)"
      R"("ttl_ns":60000000000,"rekey_records":5,"client_svid":"none","server_svid":"good"},)"
      R"("crypto":{"device":"crypto_qat"},"worker":{"binary":"/x","environment":{"A":"b"}},"probes":["cpu"]})");
}

TEST(CellJson, RoundTrip) {
  const Json json = to_json(full_config());
  const auto config = cell_config_from_json(parse_json(dump_json(json), "test").value());
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(to_json(*config), json);
  EXPECT_EQ(config->placement.client, (std::vector<int>{3, 1}));
  EXPECT_EQ(config->testbed.ip, IpFamily::v6);
  EXPECT_FALSE(config->testbed.offloads.checksum.has_value());
  EXPECT_EQ(config->testbed.numa_server, 1);
}

// Calls `change` for every value in the tree, on a copy of the whole.
void for_each_place(const Json& json, const std::function<void(const Json::json_pointer&)>& use,
                    const Json::json_pointer& at = Json::json_pointer()) {
  for (const auto& [key, value] : json.at(at).items()) {
    const Json::json_pointer place = at / key;
    use(place);
    if (json.at(place).is_object()) for_each_place(json, use, place);
  }
}

TEST(CellJson, EveryKeyIsNeededAndTyped) {
  const Json json = to_json(full_config());
  int places = 0;
  for_each_place(json, [&](const Json::json_pointer& place) {
    ++places;
    const std::string text = place.to_string();
    const bool in_free_map =
        text.find("/environment/") != std::string::npos || text.find("/sysctls/client/") != std::string::npos;
    Json lacking = json;
    lacking[place.parent_pointer()].erase(place.back());
    EXPECT_EQ(cell_config_from_json(lacking).has_value(), in_free_map) << place;
    for (const Json& wrong :
         {Json(-1), Json(1.5), Json("\x01"), Json::array({Json::object()}), Json(1e300)}) {
      Json changed = json;
      changed[place] = wrong;
      const auto config = cell_config_from_json(changed);
      ASSERT_FALSE(config) << place << " " << wrong;
      EXPECT_EQ(config.error().kind, ErrorKind::bad_input);
    }
  });
  EXPECT_GT(places, 40);
}

TEST(CellJson, RefusesWhatItDoesNotKnow) {
  const auto message = [](const char* pointer, const Json& value) {
    Json json = to_json(full_config());
    json[Json::json_pointer(pointer)] = value;
    const auto config = cell_config_from_json(json);
    return config ? "" : config.error().message();
  };
  EXPECT_EQ(message("/load/extra", 1), "cell configuration: unknown key 'load.extra'");
  EXPECT_EQ(message("/load/streams", 0), "cell configuration: load.streams: 0 is outside 1..10000");
  EXPECT_EQ(message("/phases/measure_ns", 0),
            "cell configuration: phases.measure_ns: 0 is outside 1..86400000000000");
  EXPECT_EQ(
      message("/testbed/sysctls/client/kernel.panic", "1"),
      "cell configuration: testbed.sysctls.client: 'kernel.panic' is not a sysctl of a network namespace");
  EXPECT_EQ(message("/transport/tunnel", "../x"), "cell configuration: transport.tunnel: not a name");
  EXPECT_EQ(message("/phases/max_duration_ns", 1),
            "cell configuration: phases.max_duration 1ns is less than phases.measure 1s; min_samples needs "
            "at least "
            "1s");
  for (const Json& json : {Json(), Json(1), Json("x"), Json::array(), Json::object()})
    EXPECT_FALSE(cell_config_from_json(json)) << json;
}

}  // namespace
}  // namespace fsbl
