/* Speaks NVML's C interface for a made-up GPU, or two, for tests of flare/measuring/sampling.py.

   The file that FAKE_NVML names holds, in MB: total, reserved and allocated memory; then
   the ID of a process that uses the GPU, or 0; whether MIG is on; and the reasons why
   the clock is slowed down. It is read anew with every call. OLD leaves out what drivers
   before 510 do not have. With FAKE_NVML_SECOND there is a second GPU, of that name, with
   the same memory. FAKE_NVML_V2 is the number of the error that the second version of the
   call for the memory ends with. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long bytes;
struct state { bytes total, reserved, used, pid, mig, reasons; };
struct memory { bytes total, free, used; };
struct memory_v2 { unsigned version; bytes total, reserved, free, used; };
struct process { unsigned pid; bytes used; unsigned gpu, compute; };
enum { OK = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, GPU_LOST = 15 };

static int read_state(struct state *s) {
  FILE *file = fopen(getenv("FAKE_NVML"), "r");
  if (!file) return GPU_LOST;
  int count = fscanf(file, "%llu %llu %llu %llu %llu %llu", &s->total, &s->reserved,
                     &s->used, &s->pid, &s->mig, &s->reasons);
  fclose(file);
  return count == 6 ? OK : GPU_LOST;
}

int nvmlInitWithFlags(unsigned flags) { return OK; }
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) {
  return code == GPU_LOST ? "GPU is lost" : code == NOT_FOUND ? "Not Found" : "Other";
}
static unsigned count_gpus(void) { return getenv("FAKE_NVML_SECOND") ? 2 : 1; }
static const char *uuids[] = {"GPU-11111111-2222", "GPU-33333333-4444"};
int nvmlDeviceGetCount_v2(unsigned *count) { *count = count_gpus(); return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  *device = (void *)uuids[index ? 1 : 0];
  return index < count_gpus() ? OK : NOT_FOUND;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  unsigned index = strcmp(uuid, uuids[1]) == 0;
  *device = (void *)uuids[index];
  return index < count_gpus() && strcmp(uuid, uuids[index]) == 0 ? OK : NOT_FOUND;
}
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) {
  strcpy(text, device);
  return OK;
}
int nvmlDeviceGetName(void *device, char *text, unsigned size) {
  strcpy(text, device == uuids[1] ? getenv("FAKE_NVML_SECOND") : "Made-up 1");
  return OK;
}
int nvmlSystemGetDriverVersion(char *text, unsigned size) {
  strcpy(text, "999.1");
  return OK;
}
int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending) {
  struct state s;
  int code = read_state(&s);
  *now = *pending = s.mig;
  return code;
}

/* The first version counts what is reserved as used; the second one does not. */
int nvmlDeviceGetMemoryInfo(void *device, struct memory *m) {
  struct state s;
  int code = read_state(&s);
  m->total = s.total << 20;
  m->used = (s.used + s.reserved) << 20;
  m->free = m->total - m->used;
  return code;
}
#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory_v2 *m) {
  struct state s;
  const char *fails = getenv("FAKE_NVML_V2");
  int code = fails ? atoi(fails) : read_state(&s);
  if (code) return code;
  m->total = s.total << 20;
  m->reserved = s.reserved << 20;
  m->used = s.used << 20;
  m->free = m->total - m->used - m->reserved;
  return code;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count,
                                            struct process *processes) {
  struct state s;
  int code = read_state(&s);
  unsigned room = *count;
  *count = s.pid ? 1 : 0;
  if (code || !s.pid) return code;
  if (!processes || room < 1) return TOO_SMALL;
  processes[0].pid = s.pid;
  processes[0].used = 1 << 20;
  return OK;
}
int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz) {
  *mhz = 1500;
  return OK;
}
int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
  *celsius = 61;
  return OK;
}
/* 90 J, and 60 J more with each call. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, bytes *millijoules) {
  static int calls;
  *millijoules = 90000 + 60000 * calls++;
  return OK;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, bytes *reasons) {
  struct state s;
  int code = read_state(&s);
  *reasons = s.reasons;
  return code;
}
#endif
