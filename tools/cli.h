/* Command lines as data: a command is a few tables of options and the struct they fill; parsing, checking and --help come from the tables.
 * Options are --name VALUE and --name=VALUE (or one letter, without value); none has an optional value. The last of a repeated option
 * counts, but a CLI_CALL is called each time. Every command has --help and --version. */
#ifndef FMM_CLI_H
#define FMM_CLI_H
#include "runtime/status.h"

typedef enum fmm_cli_kind {
  CLI_FLAG,   /* int, set to 1 */
  CLI_INT,    /* int64_t, minimum .. maximum; "1e6" is an integer too */
  CLI_REAL,   /* double, minimum .. maximum */
  CLI_TEXT,   /* const char *, not empty */
  CLI_CHOICE, /* int, the index in `choices` ("auto|cpu|gpu") */
  CLI_CALL    /* `call` is given the struct and the value */
} fmm_cli_kind;

typedef struct fmm_cli_option {
  const char *name;  /* without dashes; NULL ends a table */
  fmm_cli_kind kind;
  size_t offset;     /* of the member in the struct of values */
  const char *value; /* "FILE", for --help; NULL for choices (they are shown) and flags */
  const char *help;  /* what it means (default) */
  double minimum, maximum;
  const char *choices;
  fmm_status (*call)(void *values, const char *value);
  char letter;       /* -q; 0 none */
} fmm_cli_option;

/* Rows of a table: at is the offset of the member, letter 0 when there is none. */
#define FMM_CLI_FLAG(name_, letter_, at, help_) {.name = (name_), .kind = CLI_FLAG, .letter = (letter_), .offset = (at), .help = (help_)}
#define FMM_CLI_INT(name_, at, value_, lowest, highest, help_) \
  {.name = (name_), .kind = CLI_INT, .offset = (at), .value = (value_), .minimum = (lowest), .maximum = (highest), .help = (help_)}
#define FMM_CLI_REAL(name_, at, value_, lowest, highest, help_) \
  {.name = (name_), .kind = CLI_REAL, .offset = (at), .value = (value_), .minimum = (lowest), .maximum = (highest), .help = (help_)}
#define FMM_CLI_TEXT(name_, at, value_, help_) {.name = (name_), .kind = CLI_TEXT, .offset = (at), .value = (value_), .help = (help_)}
#define FMM_CLI_CHOICE(name_, at, choices_, help_) {.name = (name_), .kind = CLI_CHOICE, .offset = (at), .choices = (choices_), .help = (help_)}
#define FMM_CLI_CALL(name_, function, value_, help_) {.name = (name_), .kind = CLI_CALL, .call = (function), .value = (value_), .help = (help_)}
#define FMM_CLI_END {.name = NULL}

typedef struct fmm_cli_table { const char *title; const fmm_cli_option *options; } fmm_cli_table;

typedef struct fmm_cli {
  const char *command;         /* "fmm-run" */
  const char *usage, *summary; /* lines of --help */
  const fmm_cli_table *tables; /* ended by a NULL title */
  size_t positional;           /* offset of a const char * for the one argument that is no option */
  int takes_positional;
} fmm_cli;

/* Fills *values (defaults are there already). *done is set when --help or --version was asked and printed: then exit with 0.
 * FMM_ERR_ARGUMENT names the option, the value and what is allowed; an unknown option the nearest known one. */
fmm_status fmm_cli_parse(const fmm_cli *cli, int argc, char **argv, void *values, int *done);
void fmm_cli_help(const fmm_cli *cli);

/* What the list of choices says at this index, in text (capacity 32). */
const char *fmm_cli_choice(const char *choices, int index, char text[32]);

/* ---- what every command's main does ---- */

/* Numbers with points, SIGINT and SIGTERM that remove temporaries and end with 130 and 143, SIGPIPE and SIGXFSZ as plain write errors. */
void fmm_cli_begin(const char *command);
/* "COMMAND: error: ..." for a failure; flushes standard output, whose failure is one (FMM_ERR_FILE). Returns the exit code. */
int fmm_cli_end(fmm_status status, int verbose);
/* One line "COMMAND: ..." on standard error. */
void fmm_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The number that an option's text is, within bounds; else an error that names both. */
fmm_status fmm_cli_number(const char *option, const char *text, double minimum, double maximum, double *value);
#endif
