// Load generator for the benchmark: one thread, epoll, Linux, loopback only. Stops by itself.
//
//   gcc -O2 -o load load.c
//   load echo  -p 9000  -w 64 -s 100      messages to a WebSocket server that sends them back
//   load relay -p 49134 -w 64 -s 100      a worker, and a caller with -w calls in flight;
//                                         with -b 1 both in batches (engine.batch.v1)
//   load call  -p 49134 -w 64 -s 100      a caller of the function -f that somebody else offers
//   load set   -p 49134 -w 64 -s 100      a caller with -w state::set of 1,000 keys in flight
//   load get   -p 49134 -w 64 -s 100      the same with state::get of keys that have been set
//   load enqueue -p 49134 -w 64 -s 100    a caller that puts calls of the function -f into the queue
//                                         -q, with -w of them in flight
//   load http  -p 3111  -c 64 -s 100      -c connections with one POST /bench at a time each;
//                                         with -e 49134 also the worker behind that route, which
//                                         registers -r other routes besides
//
// -s bytes of payload, -W seconds of warm-up, -d seconds measured, -P process whose CPU is read.
// Prints one line of JSON: rate per second, p50_us, p99_us, cpu_s per 100,000, rss_mb.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct { uint8_t *at; size_t length, room; } Buffer;
typedef enum { ECHO, CALLER, WORKER, HTTP } Role;
typedef struct {
  int fd, waits_to_write, is_batched;
  Role role;
  Buffer in, out, batch, message; // message: the fragments of one, put together
  size_t written;
  uint64_t sent, answered; // counts; a request's number is its place in started_ns
  uint64_t *started_ns;
} Line;

enum { SLOTS = 1 << 16, KEYS = 1000, BATCH_BYTES_MAX = 1 << 19 };
static const char *mode = "", *function_id = "bench::echo", *queue = "default";
static int port, engine_port, window = 1, lines_count = 1, epoll_fd, process_id, batched, routes;
static int is_registered;
static size_t payload_size = 100;
static double measured_s = 2, warmup_s = 0.5;
static char *payload;
static int is_measuring;
static uint32_t *latencies_ns;
static size_t latencies_count, latencies_room;

static void fail(const char *format, ...) {
  va_list rest;
  va_start(rest, format);
  vfprintf(stderr, format, rest);
  va_end(rest);
  fputc('\n', stderr);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint8_t *reserve(Buffer *buffer, size_t more) {
  if (buffer->length + more > buffer->room) {
    while (buffer->length + more > buffer->room) buffer->room = buffer->room ? buffer->room * 2 : 65536;
    buffer->at = realloc(buffer->at, buffer->room);
  }
  return buffer->at + buffer->length;
}

static void append(Buffer *buffer, const void *bytes, size_t length) {
  memcpy(reserve(buffer, length), bytes, length);
  buffer->length += length;
}

static void drop_front(Buffer *buffer, size_t length) {
  memmove(buffer->at, buffer->at + length, buffer->length - length);
  buffer->length -= length;
}

// One masked frame.
static void put_frame(Line *line, int opcode, const void *bytes, size_t length) {
  static const uint8_t mask[8] = {0x37, 0xfa, 0x21, 0x3d, 0x37, 0xfa, 0x21, 0x3d};
  uint8_t *p = reserve(&line->out, length + 16), *start = p;
  const uint8_t *from = bytes;
  *p++ = 0x80 | opcode;
  if (length < 126) *p++ = 0x80 | length;
  else if (length < 65536) { *p++ = 0x80 | 126; *p++ = length >> 8; *p++ = length; }
  else { *p++ = 0x80 | 127; for (int i = 7; i >= 0; i--) *p++ = (uint64_t)length >> (8 * i); }
  memcpy(p, mask, 4);
  p += 4;
  size_t i = 0;
  uint64_t word, key;
  memcpy(&key, mask, 8);
  for (; i + 8 <= length; i += 8) { memcpy(&word, from + i, 8); word ^= key; memcpy(p + i, &word, 8); }
  for (; i < length; i++) p[i] = from[i] ^ mask[i & 7];
  line->out.length += p + length - start;
}

static void put_batch(Line *line) {
  if (line->batch.length) put_frame(line, 1, line->batch.at, line->batch.length - 1);
  line->batch.length = 0;
}

// One message, alone or with others in the next frame.
static void put_message(Line *line, const void *bytes, size_t length) {
  if (!line->is_batched) { put_frame(line, 1, bytes, length); return; }
  append(&line->batch, bytes, length);
  append(&line->batch, "\n", 1);
  if (line->batch.length > BATCH_BYTES_MAX) put_batch(line);
}

static void watch(Line *line, int for_writing) {
  if (line->waits_to_write == for_writing) return;
  struct epoll_event event = {EPOLLIN | (for_writing ? EPOLLOUT : 0), {.ptr = line}};
  epoll_ctl(epoll_fd, EPOLL_CTL_MOD, line->fd, &event);
  line->waits_to_write = for_writing;
}

static void flush(Line *line) {
  put_batch(line);
  while (line->written < line->out.length) {
    ssize_t n = send(line->fd, line->out.at + line->written, line->out.length - line->written,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) { watch(line, 1); return; }
    if (n < 0) fail("send: %s", strerror(errno));
    line->written += n;
  }
  line->written = line->out.length = 0;
  watch(line, 0);
}

static void put_request(Line *line) {
  static Buffer text;
  uint64_t number = line->sent++;
  line->started_ns[number % SLOTS] = now_ns();
  if (line->role == ECHO) { put_frame(line, 1, payload, payload_size); return; }
  char *p = (char *)(text.length = 0, reserve(&text, payload_size + 512));
  const char *call = "{\"type\":\"invokefunction\",\"invocation_id\":\"00000000-1111-4000-8000-%012llx\","
                     "\"function_id\":\"%s\",\"data\":";
  unsigned long long id = number;
  size_t n;
  if (line->role == HTTP) {
    n = sprintf(p, "POST /bench HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n", payload_size);
    memcpy(p + n, payload, payload_size);
    append(&line->out, p, n + payload_size);
    return;
  }
  int is_set = !strcmp(mode, "set"), is_get = !strcmp(mode, "get");
  if (!strcmp(mode, "enqueue")) {
    call = "{\"type\":\"invokefunction\",\"invocation_id\":\"00000000-1111-4000-8000-%012llx\","
           "\"function_id\":\"%s\",\"action\":{\"type\":\"enqueue\",\"queue\":\"%s\"},\"data\":";
    n = sprintf(p, call, id, function_id, queue);
    memcpy(p + n, payload, payload_size);
    p[n + payload_size] = '}';
    put_message(line, p, n + payload_size + 1);
    return;
  }
  n = sprintf(p, call, id, is_set ? "state::set" : is_get ? "state::get" : function_id);
  if (is_set || is_get) n += sprintf(p + n, "{\"scope\":\"bench\",\"key\":\"key-%llu\"", id % KEYS);
  if (is_set) n += sprintf(p + n, ",\"value\":");
  if (!is_get) { memcpy(p + n, payload, payload_size); n += payload_size; }
  n += sprintf(p + n, is_set || is_get ? "}}" : "}");
  put_message(line, p, n);
}

static void finish(Line *line, uint64_t number) {
  uint64_t took = now_ns() - line->started_ns[number % SLOTS];
  line->answered++;
  if (is_measuring) {
    if (latencies_count == latencies_room) {
      latencies_room = latencies_room ? latencies_room * 2 : 1 << 20;
      latencies_ns = realloc(latencies_ns, latencies_room * sizeof *latencies_ns);
    }
    latencies_ns[latencies_count++] = took > UINT32_MAX ? UINT32_MAX : took;
  }
  put_request(line);
}

// Where the 36 characters of the invocation_id of a canonical message start.
static const char *id_in(const uint8_t *message, size_t length) {
  const char *key = "\"invocation_id\":\"";
  const char *found = memmem(message, length < 300 ? length : 300, key, strlen(key));
  return found ? found + strlen(key) : 0;
}

static void got_message(Line *line, const uint8_t *message, size_t length) {
  if (line->role == ECHO) {
    if (length != payload_size) fail("echo of %zu bytes", length);
    finish(line, line->answered);
    return;
  }
  const char *id = id_in(message, length);
  if (!id) {
    if (memmem(message, length, "\"error\":", 8)) fail("%.*s", (int)length, message);
    if (memmem(message, length, "\"pong\"", 6)) is_registered = 1;
    return; // or workerregistered
  }
  if (line->role == CALLER) {
    if (memmem(message, length < 300 ? length : 300, "\"error\":", 8)) fail("%.*s", (int)length, message);
    if (!strcmp(mode, "get") && !memmem(message, length, "\"result\":{", 10)) fail("%.*s: not set", (int)length, message);
    char digits[13] = {0};
    memcpy(digits, id + 24, 12);
    finish(line, strtoull(digits, 0, 16));
    return;
  }
  static Buffer text;
  char *p = (char *)(text.length = 0, reserve(&text, payload_size + 512));
  int is_http = !strcmp(mode, "http");
  size_t n = sprintf(p, "{\"type\":\"invocationresult\",\"invocation_id\":\"%.36s\",\"function_id\":"
                        "\"bench::%s\",\"result\":%s", id, is_http ? "http" : "echo",
                     is_http ? "{\"status_code\":200,\"body\":" : "");
  memcpy(p + n, payload, payload_size);
  n += payload_size;
  n += sprintf(p + n, is_http ? "}}" : "}");
  put_message(line, p, n);
}

static void got_text(Line *line, const uint8_t *text, size_t length) {
  const uint8_t *end = text + length, *next;
  for (; line->is_batched && (next = memchr(text, '\n', end - text)); text = next + 1) {
    if (next > text) got_message(line, text, next - text);
  }
  if (end > text) got_message(line, text, end - text);
}

static size_t take_frame(Line *line, const uint8_t *p, size_t length) {
  if (length < 2) return 0;
  size_t header = 2;
  uint64_t size = p[1] & 127;
  if (size == 126) { if (length < 4) return 0; size = p[2] << 8 | p[3]; header = 4; }
  else if (size == 127) {
    if (length < 10) return 0;
    size = 0;
    for (int i = 0; i < 8; i++) size = size << 8 | p[2 + i];
    header = 10;
  }
  if (length < header + size) return 0;
  int opcode = p[0] & 15, is_last = p[0] >> 7;
  if (opcode == 8) fail("the server closed the line: %.*s", (int)size, p + header);
  if (opcode == 9) put_frame(line, 10, p + header, size);
  if (opcode == 1 && is_last) got_text(line, p + header, size);
  else if (opcode < 2) {
    append(&line->message, p + header, size);
    if (is_last) { got_text(line, line->message.at, line->message.length); line->message.length = 0; }
  }
  return header + size;
}

static size_t take_response(Line *line, const uint8_t *p, size_t length) {
  const uint8_t *end = memmem(p, length, "\r\n\r\n", 4);
  if (!end) return 0;
  int is_early = !is_measuring && !memcmp(p + 9, "404", 3); // The route is being made.
  if (!is_early && memcmp(p + 9, "200", 3)) fail("%.*s", (int)length, p);
  char head[4096] = {0};
  memcpy(head, p, (size_t)(end - p) < sizeof head ? (size_t)(end - p) : sizeof head - 1);
  const char *field = strcasestr(head, "content-length:");
  if (!field) fail("no content-length in %s", head);
  size_t whole = end + 4 - p + strtoul(field + 15, 0, 10);
  if (length < whole) return 0;
  finish(line, line->answered);
  return whole;
}

static void read_some(Line *line) {
  for (int round = 0; round < 4; round++) {
    uint8_t *into = reserve(&line->in, 262144);
    ssize_t n = recv(line->fd, into, 262144, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) fail("the server has gone: %s", n ? strerror(errno) : "end of stream");
    line->in.length += n;
    size_t used = 0, took;
    do {
      const uint8_t *p = line->in.at + used;
      size_t left = line->in.length - used;
      took = line->role == HTTP ? take_response(line, p, left) : take_frame(line, p, left);
      used += took;
    } while (took);
    if (used) drop_front(&line->in, used);
    if (n < 262144) break;
  }
  flush(line);
}

static Line *connect_to(int to_port, Role role) {
  Line *line = calloc(1, sizeof *line);
  line->role = role;
  line->started_ns = calloc(SLOTS, sizeof *line->started_ns);
  line->fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(to_port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(line->fd, (void *)&address, sizeof address)) fail("port %d: %s", to_port, strerror(errno));
  int on = 1;
  setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (role != HTTP) {
    char head[2048];
    int n = sprintf(head, "GET / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
                          "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                          "Sec-WebSocket-Version: 13\r\n%s\r\n", to_port,
                    batched ? "Sec-WebSocket-Protocol: engine.batch.v1\r\n" : "");
    if (write(line->fd, head, n) != n) fail("write: %s", strerror(errno));
    size_t have = 0; // Byte by byte: what stands behind the head is the first frame.
    while (have < 4 || memcmp(head + have - 4, "\r\n\r\n", 4)) {
      if (have == sizeof head - 1 || read(line->fd, head + have, 1) != 1) fail("no upgrade");
      have++;
    }
    head[have] = 0;
    if (strncmp(head, "HTTP/1.1 101", 12)) fail("no upgrade: %s", head);
    line->is_batched = !!strcasestr(head, "\nsec-websocket-protocol: engine.batch.v1");
    if (batched && !line->is_batched) fail("the server does not select engine.batch.v1");
  }
  struct epoll_event event = {EPOLLIN, {.ptr = line}};
  epoll_ctl(epoll_fd, EPOLL_CTL_ADD, line->fd, &event);
  return line;
}

static void say(Line *line, const char *format, ...) {
  char text[1024];
  va_list rest;
  va_start(rest, format);
  int n = vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  put_message(line, text, n);
}

static void say_route(Line *line, int number, const char *path) {
  say(line, "{\"type\":\"registertrigger\",\"id\":\"bench-route-%d\",\"trigger_type\":\"http\","
            "\"function_id\":\"bench::http\",\"config\":{\"api_path\":\"%s\",\"http_method\":\"POST\"}}",
      number, path);
}

// Returns when the engine has handled all it registers; its HTTP worker may need a moment more.
static void start_worker(int to_port) {
  Line *worker = connect_to(to_port, WORKER);
  say(worker, "{\"type\":\"registerfunction\",\"id\":\"bench::echo\"}");
  say(worker, "{\"type\":\"registerfunction\",\"id\":\"bench::http\"}");
  if (!strcmp(mode, "http")) {
    for (int i = 1; i <= routes; i++) {
      char path[64];
      sprintf(path, i % 2 ? "/group-%d/items" : "/group-%d/items/:id", i);
      say_route(worker, i, path);
    }
    say_route(worker, 0, "/bench"); // The last: when it is there, all are.
  }
  say(worker, "{\"type\":\"ping\"}");
  flush(worker);
  struct epoll_event event;
  while (!is_registered) {
    if (epoll_wait(epoll_fd, &event, 1, 10000) < 1) fail("the ping was not answered");
    if (event.events & EPOLLOUT) flush(worker);
    if (event.events & EPOLLIN) read_some(worker);
  }
}

// Of all threads, those that ended too.
static double cpu_seconds(void) {
  clockid_t clock;
  struct timespec t;
  if (!process_id || clock_getcpuclockid(process_id, &clock) || clock_gettime(clock, &t)) return 0;
  return t.tv_sec + t.tv_nsec / 1e9;
}

static long resident_mb(void) {
  char path[64];
  long pages = 0;
  sprintf(path, "/proc/%d/statm", process_id);
  FILE *file = process_id ? fopen(path, "r") : 0;
  if (!file) return 0;
  if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE) / 1048576;
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static void report(double seconds, double cpu) {
  if (!latencies_count) fail("nothing came back in %.1f s", seconds);
  qsort(latencies_ns, latencies_count, sizeof *latencies_ns, ascending);
  printf("{\"rate\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"cpu_s\":%.3f,\"rss_mb\":%ld}\n",
         latencies_count / seconds, latencies_ns[latencies_count / 2] / 1e3,
         latencies_ns[latencies_count * 99 / 100] / 1e3, cpu / latencies_count * 1e5, resident_mb());
}

static void read_arguments(int count, char **words) {
  if (count < 2) fail("usage: see the head of load.c");
  mode = words[1];
  for (int i = 2; i + 1 < count; i += 2) {
    const char *value = words[i + 1];
    switch (words[i][1]) {
      case 'p': port = atoi(value); break;
      case 'e': engine_port = atoi(value); break;
      case 'w': window = atoi(value); break;
      case 'c': lines_count = atoi(value); break;
      case 'b': batched = atoi(value); break;
      case 'r': routes = atoi(value); break;
      case 'f': function_id = value; break;
      case 'q': queue = value; break;
      case 's': payload_size = strtoul(value, 0, 10); break;
      case 'd': measured_s = atof(value); break;
      case 'W': warmup_s = atof(value); break;
      case 'P': process_id = atoi(value); break;
      default: fail("unknown option %s", words[i]);
    }
  }
  if (count % 2) fail("%s lacks its value", words[count - 1]);
  if (window < 1 || window >= SLOTS) fail("-w has to be 1 to %d", SLOTS - 1);
}

// JSON of exactly payload_size bytes, with the mixture that real payloads have.
static void make_payload(void) {
  if (payload_size < 40) fail("-s has to be at least 40");
  payload = malloc(payload_size + 128);
  size_t n = sprintf(payload, "{\"items\":[");
  for (int i = 0; n + 64 < payload_size; i++) {
    n += sprintf(payload + n, "%s{\"id\":%d,\"name\":\"item-%d\",\"ok\":true,\"v\":%d.5}", i ? "," : "", i, i, i % 97);
  }
  n += sprintf(payload + n, "],\"p\":\"");
  while (n + 2 < payload_size) payload[n++] = 'x';
  memcpy(payload + n, "\"}", 2);
  if (n + 2 != payload_size) fail("-s %zu cannot be met exactly", payload_size);
}

int main(int count, char **words) {
  read_arguments(count, words);
  make_payload();
  epoll_fd = epoll_create1(0);
  Role role = !strcmp(mode, "echo") ? ECHO : !strcmp(mode, "http") ? HTTP : CALLER;
  if (!strcmp(mode, "relay")) start_worker(port);
  if (engine_port) start_worker(engine_port);
  for (int i = 0; i < lines_count; i++) {
    Line *line = connect_to(port, role);
    for (int sent = 0; sent < (role == HTTP ? 1 : window); sent++) put_request(line);
    flush(line);
  }
  uint64_t start = now_ns() + (uint64_t)(warmup_s * 1e9), end = start + (uint64_t)(measured_s * 1e9);
  double cpu_before = 0;
  struct epoll_event events[64];
  for (uint64_t now = now_ns(); now < end; now = now_ns()) {
    if (!is_measuring && now >= start) { is_measuring = 1; start = now; cpu_before = cpu_seconds(); }
    int ready = epoll_wait(epoll_fd, events, 64, 100);
    for (int i = 0; i < ready; i++) {
      if (events[i].events & EPOLLIN) read_some(events[i].data.ptr);
      if (events[i].events & EPOLLOUT) flush(events[i].data.ptr);
    }
  }
  report((now_ns() - start) / 1e9, cpu_seconds() - cpu_before);
  return 0;
}
