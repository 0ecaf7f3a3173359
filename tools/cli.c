/* Parsing of command lines from option tables; see cli.h. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "revision.h"
#include "runtime/io/number.h"
#include "runtime/memory.h"

static const fmm_cli_option common[] = {FMM_CLI_FLAG("help", 'h', 0, "this text"), FMM_CLI_FLAG("version", 0, 0, "the version"), FMM_CLI_END};

typedef struct match { const fmm_cli_option *option; const char *value; } match; /* value: after '=', or NULL */

static int same_name(const char *argument, const fmm_cli_option *o, const char **value) {
  size_t n = strlen(o->name);
  *value = NULL;
  if (argument[0] == '-' && o->letter && argument[1] == o->letter && !argument[2]) return 1;
  if (strncmp(argument, "--", 2) || strncmp(argument + 2, o->name, n)) return 0;
  if (argument[2 + n] == '=') *value = argument + 3 + n;
  return argument[2 + n] == 0 || argument[2 + n] == '=';
}

/* Fewest insertions, deletions and replacements from a to b (Levenshtein), at most 63 characters of each. */
static int edit_distance(const char *a, size_t na, const char *b) {
  int row[64];
  size_t nb = strlen(b) < 63 ? strlen(b) : 63;
  if (na > 63) na = 63;
  for (size_t j = 0; j <= nb; j++) row[j] = (int)j;
  for (size_t i = 1; i <= na; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= nb; j++) {
      int replaced = diagonal + (a[i - 1] != b[j - 1]), other = 1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
      diagonal = row[j];
      row[j] = replaced < other ? replaced : other;
    }
  }
  return row[nb];
}

static fmm_status unknown(const fmm_cli *cli, const char *argument) {
  const char *word = argument + strspn(argument, "-"), *nearest = NULL;
  size_t n = strcspn(word, "=");
  int best = (int)n / 2 + 1;
  for (const fmm_cli_table *t = cli->tables; t->title; t++)
    for (const fmm_cli_option *o = t->options; o->name; o++) {
      int distance = n >= 3 && !strncmp(word, o->name, n) ? 0 : edit_distance(word, n, o->name);
      if (distance < best) best = distance, nearest = o->name;
    }
  if (nearest) return FMM_FAIL(FMM_ERR_ARGUMENT, "unknown option '%s'; did you mean --%s? (%s --help lists all)", argument, nearest, cli->command);
  return FMM_FAIL(FMM_ERR_ARGUMENT, "unknown option '%s'; %s --help lists all", argument, cli->command);
}

fmm_status fmm_cli_number(const char *option, const char *text, double minimum, double maximum, double *value) {
  double v = NAN;
  if (!fmm_parse_number(text, text + strlen(text), &v)) return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s: '%s' is not a number", option, text);
  if (!(v >= minimum && v <= maximum)) return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s: %s is outside %g .. %g", option, text, minimum, maximum);
  *value = v;
  return FMM_OK;
}

static fmm_status set_integer(const fmm_cli_option *o, const char *text, int64_t *place) {
  double v = NAN;
  int64_t exact = 0;
  if (!fmm_parse_number(text, text + strlen(text), &v)) return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s: '%s' is not a number", o->name, text);
  const int is_exact = fmm_parse_count(text, text + strlen(text), &exact); /* beyond 2^53 v is another */
  if (!(v >= o->minimum && v <= o->maximum) || (is_exact && exact > (int64_t)o->maximum))
    return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s: %s is outside %.0f .. %.0f", o->name, text, o->minimum, o->maximum);
  if (v != floor(v)) return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s: %s is not a whole number", o->name, text);
  *place = is_exact ? exact : (int64_t)v;
  return FMM_OK;
}

const char *fmm_cli_choice(const char *choices, int index, char text[32]) {
  for (; index > 0 && strchr(choices, '|'); index--) choices = strchr(choices, '|') + 1;
  snprintf(text, 32, "%.*s", (int)strcspn(choices, "|"), choices);
  return text;
}

static fmm_status set_choice(const fmm_cli_option *o, const char *text, int *place) {
  size_t length = strlen(text);
  const char *c = o->choices;
  for (int i = 0; length; i++) {
    size_t n = strcspn(c, "|");
    if (n == length && !strncmp(c, text, n)) return *place = i, FMM_OK;
    if (!c[n]) break;
    c += n + 1;
  }
  return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s: '%s' is none of %s", o->name, text, o->choices);
}

static fmm_status set_value(const fmm_cli_option *o, const char *text, void *values) {
  void *place = (char *)values + o->offset;
  switch (o->kind) {
    case CLI_FLAG: *(int *)place = 1; return FMM_OK;
    case CLI_INT: return set_integer(o, text, place);
    case CLI_REAL: return fmm_cli_number(o->name, text, o->minimum, o->maximum, place);
    case CLI_CHOICE: return set_choice(o, text, place);
    case CLI_CALL: return o->call(values, text);
    case CLI_TEXT: break;
  }
  if (!*text) return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s: an empty %s", o->name, o->value);
  *(const char **)place = text;
  return FMM_OK;
}

static match find_in(const fmm_cli_option *options, const char *argument) {
  const char *value;
  for (const fmm_cli_option *o = options; o->name; o++)
    if (same_name(argument, o, &value)) return (match){o, value};
  return (match){NULL, NULL};
}

static match find(const fmm_cli *cli, const char *argument) {
  match m = find_in(common, argument);
  for (const fmm_cli_table *t = cli->tables; t->title && !m.option; t++) m = find_in(t->options, argument);
  return m;
}

static fmm_status take_positional(const fmm_cli *cli, const char *argument, void *values) {
  const char **place = (const char **)((char *)values + cli->positional);
  if (!cli->takes_positional) return FMM_FAIL(FMM_ERR_ARGUMENT, "'%s' is no option, and %s takes none but options", argument, cli->command);
  if (*place) return FMM_FAIL(FMM_ERR_ARGUMENT, "two files, '%s' and '%s'; one was expected", *place, argument);
  if (!*argument) return FMM_FAIL(FMM_ERR_ARGUMENT, "an empty file name");
  *place = argument;
  return FMM_OK;
}

/* Nonzero when `option` was --help or --version, which are obeyed at once. */
static int obey_common(const fmm_cli *cli, const fmm_cli_option *option) {
  if (option == &common[0]) fmm_cli_help(cli);
  else if (option == &common[1]) printf("%s %s (%s)\n", cli->command, fmm_version(), FMM_REVISION);
  else return 0;
  return 1;
}

fmm_status fmm_cli_parse(const fmm_cli *cli, int argc, char **argv, void *values, int *done) {
  int only_files = 0;
  *done = 0;
  for (int i = 1; i < argc; i++) {
    if (only_files || argv[i][0] != '-') {
      FMM_TRY(take_positional(cli, argv[i], values));
      continue;
    }
    if (!strcmp(argv[i], "--")) {
      only_files = 1;
      continue;
    }
    match m = find(cli, argv[i]);
    if (!m.option) return unknown(cli, argv[i]);
    int flag = m.option->kind == CLI_FLAG;
    if (flag && m.value) return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s takes no value, but '%s' was given", m.option->name, m.value);
    if (obey_common(cli, m.option)) return *done = 1, FMM_OK;
    if (!flag && !m.value && (i + 1 == argc || !strncmp(argv[i + 1], "--", 2)))
      return FMM_FAIL(FMM_ERR_ARGUMENT, "--%s needs a value: %s", m.option->name, m.option->value ? m.option->value : m.option->choices);
    FMM_TRY(set_value(m.option, flag ? NULL : m.value ? m.value : argv[++i], values));
  }
  return FMM_OK;
}

static void help_option(const fmm_cli_option *o) {
  const char *value = o->kind == CLI_FLAG ? "" : o->value ? o->value : o->choices;
  char left[128];
  snprintf(left, sizeof left, "--%s%s%s%s", o->name, *value ? " " : "", value, "");
  if (o->letter) snprintf(left, sizeof left, "-%c, --%s", o->letter, o->name);
  if (strlen(left) > 26) printf("  %s\n  %-26s %s\n", left, "", o->help);
  else printf("  %-26s %s\n", left, o->help);
}

void fmm_cli_help(const fmm_cli *cli) {
  printf("usage: %s\n\n%s\n", cli->usage, cli->summary);
  for (const fmm_cli_table *t = cli->tables; t->title; t++) {
    printf("\n%s\n", t->title);
    for (const fmm_cli_option *o = t->options; o->name; o++) help_option(o);
  }
  printf("\nOther\n");
  for (const fmm_cli_option *o = common; o->name; o++) help_option(o);
  printf("\nExit codes: 0 done, 2 usage, 3 input data, 4 profile, 5 device, 6 resources, 130/143 interrupted.\n");
}
