// A worker that is none. FOREIGN (worker.environment.FOREIGN) says what it does with its channel, descriptor 3.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put(const void* data, size_t size) {
  if (write(3, data, size) < 0) _exit(9);
}

static void frame(unsigned id, const char* json) {
  const size_t n = strlen(json);
  const unsigned char head[9] = {n & 255, n >> 8 & 255, 0, 0, 1, id & 255, id >> 8 & 255, 0, 0};
  put(head, sizeof head);
  put(json, n);
}

static void take(unsigned* id) {  // one request: its id
  unsigned char head[9];
  for (size_t at = 0; at < sizeof head;) {
    const ssize_t n = read(3, head + at, sizeof head - at);
    if (n <= 0) _exit(0);
    at += (size_t)n;
  }
  *id = head[5] | head[6] << 8;
  for (size_t left = head[0] | head[1] << 8 | head[2] << 16; left > 0;) {
    char chunk[4096];
    const ssize_t n = read(3, chunk, left < sizeof chunk ? left : sizeof chunk);
    if (n <= 0) _exit(0);
    left -= (size_t)n;
  }
}

int main(void) {
  const char* what = getenv("FOREIGN");
  unsigned id = 0;
  if (!what) return 9;
  if (!strcmp(what, "silent")) pause();
  take(&id);
  if (!strcmp(what, "garbage")) put("GET / HTTP/1.1\r\nHost: nobody\r\n\r\n", 32), pause();
  if (!strcmp(what, "oversized")) put("\xff\xff\xff\xff\x01\0\0\0\0", 9), pause();
  if (!strcmp(what, "cut")) put("\x40\0\0\0\x01\0\0\0\0{\"ok\"", 14), exit(0);
  if (!strcmp(what, "no-json")) frame(id, "{\"ok\": "), pause();
  if (!strcmp(what, "wrong-types")) frame(id, "{\"ok\": {\"protocol\": \"one\"}}"), pause();
  if (!strcmp(what, "no-object")) frame(id, "[1, 2]"), pause();
  if (!strcmp(what, "other-id")) frame(id + 7, "{\"ok\": {\"protocol\": 1}}"), pause();
  if (!strcmp(what, "other-protocol")) frame(id, "{\"ok\": {\"protocol\": 999}}"), pause();
  if (!strcmp(what, "empty-answers")) {
    frame(id, "{\"ok\": {\"protocol\": 1}}");
    for (;;) {
      take(&id);
      frame(id, "{\"ok\": {}}");
    }
  }
  if (!strcmp(what, "strange-answers")) {
    frame(id, "{\"ok\": {\"protocol\": 1}}");
    for (;;) {
      take(&id);
      frame(id, "{\"ok\": {\"ports\": \"no\", \"planned\": -1, \"established\": {}, \"handshakes\": 3, \"refusals\": [7], "
                "\"failures\": [{}], \"latency\": [], \"tcp\": 5, \"window_from_ns\": \"x\"}}");
    }
  }
  if (!strcmp(what, "dies")) {
    frame(id, "{\"ok\": {\"protocol\": 1}}");
    take(&id);
    abort();
  }
  return 9;
}
