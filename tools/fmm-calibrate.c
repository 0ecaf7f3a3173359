/* fmm-calibrate: measures this machine into a profile; shows the one that would be used here; seals a hand-written one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calib/calibrate.h"
#include "calib/report.h"
#include "calib/topology.h"
#include "calib/trust.h"
#include "runtime/cores.h"
#include "runtime/file.h"
#include "runtime/node.h"
#include "tools/cli.h"

typedef struct calibrate_options { const char *profile, *seal; int64_t gpu_sms; int effort, json, show; } calibrate_options;

#define AT(member) offsetof(calibrate_options, member)
static const fmm_cli_option options_table[] = {
    FMM_CLI_CHOICE("effort", AT(effort), "quick|standard|thorough", "about 10 s, 90 s or 10 minutes (standard)"),
    FMM_CLI_TEXT("profile", AT(profile), "FILE", "where to write, or what to show ($FMM_PROFILE, else by fingerprint in $XDG_STATE_HOME/hybridfmm/)"),
    FMM_CLI_INT("gpu-sms", AT(gpu_sms), "K", 1, 65536, "measure K of the GPU's multiprocessors, for runs that are limited to as many"),
    FMM_CLI_FLAG("json", 0, AT(json), "the profile as JSON on standard output"),
    FMM_CLI_FLAG("show", 0, AT(show), "print the profile that would be used here, measure nothing"),
    FMM_CLI_TEXT("seal", AT(seal), "FILE", "check a profile written or edited by hand and add its checksum"),
    FMM_CLI_END};
static const fmm_cli_table tables[] = {{"Options", options_table}, {0}};
static const fmm_cli command = {.command = "fmm-calibrate",
                                .usage = "fmm-calibrate [--effort quick|standard|thorough] [--gpu-sms K] [--profile FILE] [--json] | --show | --seal FILE",
                                .summary = "Measures this machine and keeps the result as a profile, which fmm-run and fmm-predict use.",
                                .tables = tables};

/* ---- output ---- */

static fmm_status print_file(const char *path) {
  char *text = NULL;
  size_t length;
  FMM_TRY(fmm_file_read_all(path, &text, &length));
  fwrite(text, 1, length, stdout);
  if (length && text[length - 1] != '\n') putchar('\n');
  FMM_FREE(&text);
  return FMM_OK;
}

static void print_table(const fmm_machine *machine) {
  char text[8192];
  fmm_machine_text(machine, text, sizeof text);
  fputs(text, stdout);
}

/* On a terminal one line that is rewritten; into a file nothing, since it would be noise there. */
static int show_progress(void *context, const char *what, double fraction) {
  if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[K%3.0f %% %s", 100 * fraction, what);
  return 0;
}

static void end_progress(void) {
  if (isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
}

/* ---- what it does ---- */

static fmm_status choose_path(const char *asked, const char *fingerprint, int gpu_sms, char path[512]) {
  const char *named = asked ? asked : getenv("FMM_PROFILE");
  if (!named || !*named) { /* the one place whose directories are made: a misspelt one of the user's is not */
    FMM_TRY(fmm_profile_user_path(fingerprint, gpu_sms, path));
    return fmm_file_make_parents(path);
  }
  if (strlen(named) >= 512) return FMM_FAIL(FMM_ERR_ARGUMENT, "the profile's path is longer than 511 bytes (%.60s...)", named);
  memcpy(path, named, strlen(named) + 1);
  return FMM_OK;
}

static fmm_status check_part(const calibrate_options *o, const fmm_machine *machine) {
  if (o->gpu_sms <= 0 || machine->device[FMM_DEVICE_GPU].present) return FMM_OK;
  return FMM_FAIL(FMM_ERR_DEVICE, "--gpu-sms %d: there is no part of a GPU to measure here (no GPU, or a driver that cannot limit multiprocessors); leave the option out", (int)o->gpu_sms);
}

static fmm_status measure(const calibrate_options *o) {
  char path[512], fingerprint[FMM_FINGERPRINT_CHARS], doubt[512];
  int threads = fmm_cores_allowed();
  fmm_machine machine = {0};
  fmm_topology topology;
  int part = fmm_node_gpu_part(0, (int)o->gpu_sms);
  if (o->gpu_sms > 0 && !part) fmm_cli_say("--gpu-sms %d: the GPU has no more; this is the profile of the whole", (int)o->gpu_sms);
  fmm_fingerprint(fingerprint);
  FMM_TRY(choose_path(o->profile, fingerprint, part, path));
  FMM_TRY(fmm_file_check_writable(path)); /* before minutes of work, not after */
  if (o->gpu_sms > 0) FMM_TRY(fmm_node_gpu(0, part, &machine));
  FMM_TRY(check_part(o, &machine));
  FMM_TRY(fmm_topology_read(&topology));
  fmm_cli_say("measuring with %d thread%s, effort %s", threads, threads == 1 ? "" : "s", fmm_effort_name((fmm_effort)o->effort));
  fmm_status status = fmm_calibrate((fmm_effort)o->effort, threads, part, show_progress, NULL, &machine);
  end_progress();
  FMM_TRY(status);
  FMM_TRY(check_part(o, &machine)); /* it may have failed meanwhile */
  FMM_TRY(fmm_profile_save(path, &machine));
  snprintf(machine.path, sizeof machine.path, "%s", path);
  fmm_cli_say("profile written to %s", path);
  if (fmm_machine_doubt(&machine, doubt, sizeof doubt)) fmm_cli_say("%s", doubt);
  if (o->json) return print_file(path);
  char text[2048];
  fmm_topology_text(&topology, text, sizeof text);
  fputs(text, stdout);
  print_table(&machine);
  return FMM_OK;
}

static fmm_status show(const calibrate_options *o) {
  char path[512], fingerprint[FMM_FINGERPRINT_CHARS];
  int found = 0;
  fmm_machine machine;
  fmm_fingerprint(fingerprint);
  FMM_TRY(fmm_profile_find(o->profile, fingerprint, fmm_node_gpu_part(0, (int)o->gpu_sms), path, &found));
  if (!found)
    return FMM_FAIL(FMM_ERR_PROFILE, "there is no profile of this machine (fingerprint %s) yet; run fmm-calibrate, which takes 10 s with --effort quick", fingerprint);
  FMM_TRY(fmm_profile_load(path, &machine));
  if (fmm_profile_check_native(&machine, fingerprint) != FMM_OK) fmm_cli_say("note: %s", fmm_last_error());
  if (o->json) return print_file(path);
  print_table(&machine);
  return FMM_OK;
}

static fmm_status seal(const calibrate_options *o) {
  FMM_TRY(fmm_profile_seal(o->seal));
  fmm_cli_say("%s is a good profile and sealed", o->seal);
  return o->json ? print_file(o->seal) : FMM_OK;
}

enum { EFFORT_NOT_GIVEN = -1 };

static fmm_status check(const calibrate_options *o) {
  const char *besides = o->show ? "--show" : o->profile ? "--profile" : o->gpu_sms > 0 ? "--gpu-sms" : o->effort != EFFORT_NOT_GIVEN ? "--effort" : NULL;
  if (o->seal && besides) return FMM_FAIL(FMM_ERR_ARGUMENT, "--seal FILE stands alone: leave out %s", besides);
  if (o->show && o->effort != EFFORT_NOT_GIVEN) return FMM_FAIL(FMM_ERR_ARGUMENT, "--show measures nothing: leave out --effort");
  return FMM_OK;
}

int main(int argc, char **argv) {
  calibrate_options o = {.effort = EFFORT_NOT_GIVEN};
  int done;
  fmm_cli_begin("fmm-calibrate");
  fmm_status status = fmm_cli_parse(&command, argc, argv, &o, &done);
  if (status == FMM_OK && !done) status = check(&o);
  if (o.effort == EFFORT_NOT_GIVEN) o.effort = FMM_EFFORT_STANDARD;
  if (status == FMM_OK && !done) status = o.seal ? seal(&o) : o.show ? show(&o) : measure(&o);
  return fmm_cli_end(status, 0);
}
