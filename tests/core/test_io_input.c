/* Readers: what they accept, and that every malformed, truncated or hostile file is an error that says where and what was expected. */
#include "io_files.h"
#include <locale.h>
#include <math.h>
#include "runtime/io/input.h"
#include "runtime/io/number.h"
#include "runtime/trace.h"

static void assert_reads(const char *path, int64_t n, int64_t k, const double *points, const double *densities) {
  fmm_input in = {0};
  assert_ok(fmm_input_read(path, &in));
  assert_int_equal(in.n, n);
  assert_int_equal(in.k, k);
  for (int64_t i = 0; i < 3 * n; i++) assert_true(in.points[i] == points[i]);
  for (int64_t i = 0; i < k * n; i++) assert_true(in.densities[i] == densities[i]);
  fmm_input_free(&in);
  unlink(path);
}

/* The file is refused with an input error whose text has each of the words. */
static void assert_refused(const char *path, const char *word1, const char *word2) {
  fmm_input in = {0};
  size_t held = fmm_memory_now();
  fmm_status status = fmm_input_read(path, &in);
  if (status != FMM_ERR_INPUT) fail_msg("%s: %s: %s", path, fmm_status_name(status), fmm_last_error());
  if (!strstr(fmm_last_error(), path) || !strstr(fmm_last_error(), word1) || !strstr(fmm_last_error(), word2))
    fail_msg("'%s' lacks '%s' or '%s'", fmm_last_error(), word1, word2);
  assert_null(in.points);
  assert_int_equal(fmm_memory_now(), held);
  unlink(path);
}

static const double two_points[] = {1, 2, 3, -4.5, 5e-3, 6e10}, two_densities[] = {0.5, -0.25};

static void csv_reads_every_separator_header_and_line_end(void **state) {
  assert_reads(file_with("a.csv", "x,y,z,q\n1,2,3,0.5\n-4.5,5e-3,6e10,-0.25\n"), 2, 1, two_points, two_densities);
  assert_reads(file_with("a.csv", "1 ; 2;3;0.5\r\n-4.5;5E-3;+6e10;-.25"), 2, 1, two_points, two_densities);
  assert_reads(file_with("a.csv", "# made by hand\n\n  1\t2  3 \n\n# more\n-4.5 .005 60000000000.\n"), 2, 0, two_points, NULL);
  assert_reads(file_with("a.csv", "\xef\xbb\xbfx y z\n1,2,3\n-4.5,5e-3,6e10"), 2, 0, two_points, NULL);
  assert_reads(file_with("a.csv", "X Y Z x\n1,2,3,0.5\n-4.5,5e-3,6e10,-0.25\n"), 2, 1, two_points, two_densities);
  assert_reads(file_with("a.CSV", "x,y,z\n"), 0, 0, NULL, NULL);
  assert_reads(file_with("a.csv", "\"1\",\"2\",\"3\",\"0.5\"\n\"-4.5\", \"5e-3\",\" 6e10 \",-0.25\n"), 2, 1, two_points, two_densities); /* no row is lost as a header */
  assert_reads(file_with("a.csv", "\"x, in m\",y,\"z\"\n1,2,3\n-4.5,\"5e-3\",6e10\n"), 2, 0, two_points, NULL);
  assert_reads(file_with("a.csv", "\"x\",\"y\",\"z\"\n\"1\",\"2\",\"3\"\n\"-4.5\",\"5e-3\",\"6e10\"\n"), 2, 0, two_points, NULL);
}

static void malformed_csv_is_refused_with_its_line(void **state) {
  assert_refused(file_with("a.csv", ""), "no line of numbers", "expected");
  assert_refused(file_with("a.csv", "1,2,3\n1,2\n"), ":2:", "2 numbers");
  assert_refused(file_with("a.csv", "1,2,3\n1,2,3,4\n"), ":2:", "4 numbers");
  assert_refused(file_with("a.csv", "x,y,z\n1,2,abc\n"), ":2:", "'abc'");
  assert_refused(file_with("a.csv", "1,2,3\n1,,3\n"), ":2:", "field 2");
  assert_refused(file_with("a.csv", "# from a table\nid,x,y,z,q\n1,2,3,4,5\n"), ":2:", "columns 2, 3 and 4");
  assert_refused(file_with("a.csv", "charge,pos_x,pos_y,pos_z\n1,2,3,4\n"), ":1:", "columns 2, 3 and 4");
  assert_refused(file_with("a.csv", "\"q\",\"X[m]\",\"Y[m]\",\"Z[m]\"\n1,2,3,4\n"), ":1:", "columns 2, 3 and 4");
  assert_refused(file_with("a.csv", "charge,posx,posy,posz\n1,2,3,4\n"), ":1:", "columns 2, 3 and 4");
  assert_refused(file_with("a.csv", "q;Position X (nm);Position Y (nm);Position Z (nm)\n1;2;3;4\n"), ":1:", "columns 2, 3 and 4");
  assert_reads(file_with("a.csv", "px,py,pz,f_x\n1,2,3,0.5\n"), 1, 1, two_points, two_densities); /* densities of three components have axes too */
  assert_reads(file_with("a.csv", "x_coord,y_coord,z_coord,dipole.x\n1,2,3,0.5\n"), 1, 1, two_points, two_densities);
  assert_reads(file_with("a.csv", "r.x,r.y,r.z,density\n1,2,3,0.5\n"), 1, 1, two_points, two_densities);
  assert_reads(file_with("a.csv", "east,north,up,eddy\n1,2,3,0.5\n"), 1, 1, two_points, two_densities); /* names of no axis */
  assert_refused(file_with("a.csv", "\"Z\";\"Y\";\"X\"\n1;2;3\n"), ":1:", "columns 3, 2 and 1");
  assert_refused(file_with("a.csv", "1,5;2,5;3,5\n"), ":1:", "decimal points");
  assert_refused(file_with("a.csv", "+1,5;+2,5;+3,5\n1;2;3\n"), ":1:", "decimal points");
  assert_refused(file_with("a.csv", "\"1,5\";\"2,5\";\"3,5\"\n1;2;3\n"), ":1:", "decimal points");
  assert_refused(file_with("a.csv", "'1','2','3'\n1,2,3\n"), ":1:", "'1'");
  assert_refused(file_with("a.csv", "\"\"1\"\",\"\"2\"\",\"\"3\"\"\n1,2,3\n"), ":1:", "1");
  assert_refused(file_with("a.csv", "=\"1\",=\"2\",=\"3\"\n1,2,3\n"), ":1:", "=\"1\"");
  assert_refused(file_with("a.csv", "\xe2\x88\x92" "1,\xe2\x88\x92" "2,\xe2\x88\x92" "3\n1,2,3\n"), ":1:", "is not a number");
  assert_refused(file_with("a.csv", "\"1,5\",\"2,5\",\"3,5\"\n1,2,3\n"), ":1:", "'1,5'");
  assert_refused(file_with("a.csv", "1,2,0x10\n"), ":1:", "'0x10'");
  assert_refused(file_with("a.csv", "1,2\n"), "2 columns", "x y z");
  assert_refused(file_with("a.csv", "7\n"), "1 column", "x y z");
  assert_refused(file_with_bytes("a.csv", "1,2,3\n1,\0002,3\n", 14), ":2:", "'\\x002', is not a number");
}

/* What a terminal would obey, or could not show, is quoted as \xNN; letters of any alphabet stay, whole. */
static void bytes_that_are_no_text_are_quoted_by_their_numbers(void **state) {
  assert_refused(file_with_bytes("a.csv", "1,2,3,4\n1,2,3,1\0\n", 18), ":2: field 4, '1\\x00', is not a number", "");
  assert_refused(file_with("a.csv", "1,2,3\n1,\x1b[31m\x7f\a,3\n"), "'\\x1b[31m\\x7f\\x07'", "");
  assert_refused(file_with("a.csv", "1,2,3\n1,\xff\xc3,\xc3\xa9\n"), "'\\xff\\xc3'", "");
  assert_refused(file_with("a.csv", "1,2,3\n1,\xc2\x9b" "31m\xc0\x80\xed\xa0\x80\xc3\xa9,3\n"), "'\\xc2\\x9b31m\\xc0\\x80\\xed\\xa0\\x80\xc3\xa9'", "");
  assert_refused(file_with("a.csv", "1,2,3\n1,aaaaaaaaaabbbbbbbbbbccccccccccddddddddd\xc3\xa9,3\n"), "ccddddddddd',", "");
  assert_refused(file_with("a.xyz", "\x1b]0\a\n\n"), ":1: '\\x1b]0\\x07' is not", "");
  assert_refused(file_with("a.pqr", "ATOM 1 N MET 1 1.0 \x1b[1m 3 4 5\n"), "the y, '\\x1b[1m',", "");
}

static void values_that_are_not_finite_are_named_with_their_line(void **state) {
  assert_refused(file_with("a.csv", "h,e,a,d\n1,2,3,4\n\n1,nan,3,4\n"), ":4: y is nan", "must be finite");
  assert_refused(file_with("a.csv", "1,2,3,-inf\n1,2,nan,0\n"), ":1: the density is -inf", "");
  assert_refused(file_with("a.csv", "1,2,3\n4,5,1e999\n"), ":2: z is inf", "");
  assert_refused(file_with("a.csv", "1,2,3,4,5\n1,2,3,4,nan\n"), ":2: density 2 of 2 is nan", "");
  assert_refused(file_with("a.xyz", "1\n\nC 1 2 NaN\n"), ":3: z is nan", "");
  assert_refused(file_with("a.pqr", "REMARK\nATOM 1 N ALA 1 0.0 nan 0.0 1.0 1.5\n"), ":2: y is nan", "");
  assert_reads(file_with("a.pqr", "ATOM 1 N ALA 1 1 2 3 0.5 nan\n"), 1, 1, two_points, two_densities); /* the radius is not used */
}

static void xyz_reads_symbols_densities_and_point_clouds(void **state) {
  assert_reads(file_with("a.xyz", "2\na comment\nC 1 2 3\nCl -4.5 5e-3 6e10\n"), 2, 0, two_points, NULL);
  assert_reads(file_with("a.xyz", "2\n\n1 2 3 0.5\n-4.5 5e-3 6e10 -0.25\n\n\n"), 2, 1, two_points, two_densities);
  assert_reads(file_with("a.xyz", "1 2 3\n-4.5 5e-3 6e10\n"), 2, 0, two_points, NULL);
  assert_reads(file_with("a.xyz", "0\nnothing\n"), 0, 0, NULL, NULL);
}

static void malformed_xyz_is_refused_with_its_line(void **state) {
  assert_refused(file_with("a.xyz", ""), ":1:", "empty");
  assert_refused(file_with("a.xyz", "3\n\nC 1 2 3\nC 1 2 3\n"), "after 2 of the 3", "promises");
  assert_refused(file_with("a.xyz", "1\n\nC 1 2 3\nC 1 2 3\n"), ":4:", "more lines than the 1");
  assert_refused(file_with("a.xyz", "-2\n\nC 1 2 3\n"), ":1:", "'-2'");
  assert_refused(file_with("a.xyz", "99999999999999999999\n\nC 1 2 3\n"), ":1:", "number of points");
  assert_refused(file_with("a.xyz", "9223372036854775807\n\nC 1 2 3\n"), "after 1 of the 9223372036854775807", "promises");
  assert_refused(file_with("a.xyz", "2\n\nC 1 2 3\nC 1 2\n"), ":4:", "2 numbers");
  assert_refused(file_with("a.xyz", "2\n\nC 1 2\n"), ":3:", "x y z");
  assert_refused(file_with("a.xyz", "2\ncomment"), ":2:", "ends before");
}

static void pqr_reads_the_last_five_fields_of_atoms_only(void **state) {
  assert_reads(file_with("a.pqr", "REMARK   1\nATOM  5 N      MET    1   1  2 3 0.5 1.85\nTER\n"
                                  "HETATM 1 CL CL A 1 -4.5 5e-3 6e10 -0.25 0\nEND\n"), 2, 1, two_points, two_densities);
  assert_refused(file_with("a.pqr", "REMARK\nEND\n"), "no ATOM", "2 lines");
  assert_reads(file_with("a.pqr", "MODEL 1\nATOM 1 N ALA 1 1 2 3 0.5 0\nENDMDL\n"), 1, 1, two_points, two_densities);
  assert_refused(file_with("a.pqr", "MODEL 1\nATOM 1 N ALA 1 1 2 3 0.5 0\nENDMDL\nMODEL 2\nATOM 1 N ALA 1 1 2 3 0.5 0\nENDMDL\n"), ":4:", "MODEL");
  assert_reads(file_with("a.pqr", "HETATM10000 CL CL 1 1 2 3 0.5 0\n"), 1, 1, two_points, two_densities);
  assert_reads(file_with("a.pqr", "Hetatm10000 CL CL 1 1 2 3 0.5 0\natom 1 CL CL A 1 -4.5 5e-3 6e10 -0.25 0\n"), 2, 1, two_points, two_densities);
  assert_refused(file_with("a.pqr", "atom 1 CL CL A 1 1 2 3 0.5 0\nmodel 2\n"), ":2: a second MODEL", "a file of its own");
  assert_refused(file_with("a.pqr", "REMARK\nATOM 1 N MET 1 1 2 3\n"), ":2:", "8 fields");
  assert_refused(file_with("a.pqr", "ATOM 1 N ALA 1 0.0 1.0 0.0 1.0\n"), ":1: 9 fields", "x y z charge radius"); /* no radius: x is not the residue's number */
  assert_reads(file_with("a.pqr", "ATOM    100 HH11ARGN  10  1.0 2.0 3.0 0.5 1.4\n"), 1, 1, two_points, two_densities); /* columns that touch */
  assert_reads(file_with("a.pqr", "ATOM1234567 N MET1000 1.000 2.0 3.0 0.5 1.4\n"), 1, 1, two_points, two_densities);
  assert_refused(file_with("a.pqr", "ATOM 1 N ALA A 1 1.0 2.0 3.0 0.5\n"), ":1:", "radius is missing"); /* the chain's name is a field more */
  assert_refused(file_with("a.pqr", "ATOM 1 N ALA 1 nan 0.0 0.0 1.0 1.5\n"), ":1:", "nan");
  assert_refused(file_with("a.pqr", "HETATM\n"), ":1: 1 field", "x y z charge radius");
  assert_refused(file_with("a.pqr", "ATOM 1 2 3 4\n"), ":1:", "x y z charge radius");
  assert_refused(file_with("a.pqr", "ATOM 1 N MET 1 1.0 2.0 -3.0-4.0 5 6\n"), ":1:", "not a number");
}

/* A .npy of this dictionary, version and bytes of array. */
static const char *npy(int version, const char *dictionary, const void *values, size_t bytes) {
  unsigned char file[4096] = "\x93NUMPY";
  size_t n = strlen(dictionary), at = version == 1 ? 10 : 12;
  file[6] = (unsigned char)version;
  for (size_t i = 0; i + 8 < at; i++) file[8 + i] = (unsigned char)(n >> 8 * i);
  memcpy(file + at, dictionary, n);
  if (bytes) memcpy(file + at + n, values, bytes);
  return file_with_bytes("a.npy", file, at + n + bytes);
}

static void npy_reads_versions_types_and_orders(void **state) {
  const double rows[] = {1, 2, 3, 0.5, -4.5, 5e-3, 6e10, -0.25}, columns[] = {1, -4.5, 2, 5e-3, 3, 6e10};
  const float floats[] = {1.5f, 2, 3};
  const double from_floats[] = {1.5, 2, 3};
  for (int version = 1; version <= 3; version++)
    assert_reads(npy(version, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 4), }  \n", rows, sizeof rows), 2, 1, two_points, two_densities);
  assert_reads(npy(1, "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f8\"}", columns, sizeof columns), 2, 0, two_points, NULL);
  assert_reads(npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}", floats, sizeof floats), 1, 0, from_floats, NULL);
  assert_reads(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3)}", rows, 0), 0, 0, NULL, NULL);
}

static void malformed_npy_is_refused_with_its_byte_or_entry(void **state) {
  const double v[] = {1, 2, 3, 4, 5, 6}, with_nan[] = {1, 2, 3, 4, 5, NAN};
  const char good[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}";
  assert_refused(npy(1, good, with_nan, sizeof with_nan), "row 1 (from 0): z is nan", "");
  assert_refused(file_with("a.npy", ""), "byte 0", "magic");
  assert_refused(file_with("a.npy", "\x93NUMPX......."), "byte 0", "NUMPY");
  assert_refused(npy(4, good, v, sizeof v), "byte 6", "version 4");
  assert_refused(file_with_bytes("a.npy", "\x93NUMPY\1\0\xff", 9), "byte 9", "header length");
  assert_refused(file_with_bytes("a.npy", "\x93NUMPY\1\0\x40\0abc", 13), "byte 13", "header");
  assert_refused(file_with_bytes("a.npy", "\x93NUMPY\2\0\xff\xff\xff\x7f", 12), "byte 8", "at most");
  assert_refused(npy(1, good, v, sizeof v - 1), "ends at byte", "need");
  assert_refused(npy(1, good, v, 0), "ends at byte", "2 x 3");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3)}", v, sizeof v), "goes on", "byte");
  assert_refused(npy(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3)}", v, sizeof v), "descr", "<f4");
  assert_refused(npy(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3)}    \n", v, sizeof v), "is '>f8'; expected", "");
  assert_refused(npy(1, "{'descr': [('x', '<f8'), ('y', '<f8')], 'fortran_order': False, 'shape': (2,)}", v, sizeof v), "is [('x', '<f8'), ('y', '<f8')]; expected", "");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4), }     \n", v, sizeof v), "is (2, 3, 4); expected", "");
  assert_refused(npy(1, "{'descr': '\x1b[1m', 'fortran_order': False, 'shape': (2, 3)}", v, sizeof v), "is '\\x1b[1m'; expected", "");
  assert_refused(npy(1, "{'fortran_order': False, 'shape': (2, 3)}", v, sizeof v), "descr in its header is missing", "");
  assert_refused(npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3)}", v, sizeof v), "descr", "float64");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (2, 3)}", v, sizeof v), "fortran_order", "Maybe");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 1)}", v, sizeof v), "shape", "(n, columns)");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, 3)}", v, sizeof v), "shape", "-2");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': ()}", v, sizeof v), "shape", "expected");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False}", v, sizeof v), "shape", "missing");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (6,)}", v, sizeof v), "1 column", "x y z");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 3)}", v, sizeof v), "more than any file", "4611686018427387904");
  assert_refused(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000, 3)}", v, sizeof v), "need", "100000000000");
}

static void unknown_suffixes_list_the_known_ones(void **state) {
  assert_refused(file_with("a.pdb", "x"), "'.pdb'", ".pqr, .npy, .csv, .xyz");
  assert_refused(file_with("noend", "x"), "unknown suffix ''", ".pqr");
}

static void densities_alone_are_read_and_counted(void **state) {
  const double v[] = {7, 8};
  fmm_input in = {0};
  const char *path = npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", v, sizeof v);
  assert_ok(fmm_input_read_densities(path, 2, &in));
  assert_int_equal(in.n, 2);
  assert_int_equal(in.k, 1);
  assert_null(in.points);
  assert_true(in.densities[1] == 8);
  fmm_input_free(&in);
  assert_int_equal(fmm_input_read_densities(path, 3, &in), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), "2 rows of densities for 3 points"));
  path = file_with("b.pqr", "ATOM 1 N MET 1 1 2 3 0.5 1\n");
  assert_ok(fmm_input_read_densities(path, 1, &in));
  assert_true(in.k == 1 && in.densities[0] == 0.5);
  fmm_input_free(&in);
  unlink(path);
  path = file_with("b.csv", "1,nan\n");
  assert_int_equal(fmm_input_read_densities(path, 1, &in), FMM_ERR_INPUT);
  assert_non_null(strstr(fmm_last_error(), ":1: density 2 of 2 is nan"));
  unlink(path);
  snprintf(last_path, sizeof last_path, "%s/a.npy", directory);
  unlink(last_path);
}

static void numbers_are_correctly_rounded_and_strict(void **state) {
  static const char *const good[] = {"0", "-0.0", "3.", ".5", "1e22", "1e23", "9007199254740993", "123456789012345678901234567890", "4.9e-324",
                                     "1.7976931348623157e308", "2.2250738585072011e-308", "0.1", "1e-22", "8.41e21", "+7e+2", "00012.5",
                                     "0.000000000000000000000000000012345", "1e99999", "1e-99999"};
  static const char *const bad[] = {"", "-", ".", "e5", "1e", "1e+", "1.2.3", "1,5", "0x1p3", "1 2", " 1", "nan(1)", "--1", "1d5", "infinit"};
  double v;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    assert_true(fmm_parse_number(good[i], good[i] + strlen(good[i]), &v));
    if (v != strtod(good[i], NULL)) fail_msg("%s gives %.17g", good[i], v);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    if (fmm_parse_number(bad[i], bad[i] + strlen(bad[i]), &v)) fail_msg("'%s' was accepted as %g", bad[i], v);
  srand(1);
  for (int i = 0; i < 200000; i++) { /* against the C library, every bit */
    char text[64];
    double value = ldexp((double)rand() / RAND_MAX - 0.5, rand() % 200 - 100);
    int n = snprintf(text, sizeof text, "%.*g", 1 + rand() % 17, value);
    assert_true(fmm_parse_number(text, text + n, &v));
    if (v != strtod(text, NULL)) fail_msg("%s gives %.17g", text, v);
  }
}

/* A locale with decimal commas, compiled for this test from its own definition and character map: no machine need have one. localedef is part
 * of glibc's tools; it ends with 1 because the other categories are not defined. */
static void enter_comma_locale(void) {
  char command[512], charmap[4096] = "<code_set_name> ASCII\n<comment_char> %\n<escape_char> /\nCHARMAP\n";
  for (int c = 0; c < 128; c++) snprintf(charmap + strlen(charmap), sizeof charmap - strlen(charmap), "<U%04X> /x%02x\n", (unsigned)c, (unsigned)c);
  strcat(charmap, "END CHARMAP\n");
  file_with("charmap", charmap);
  file_with("definition", "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n");
  snprintf(command, sizeof command, "cd %s && localedef --no-archive -c -i ./definition -f ./charmap ./comma >/dev/null 2>&1; test -f comma/LC_NUMERIC", directory);
  assert_int_equal(system(command), 0);
  assert_int_equal(setenv("LOCPATH", directory, 1), 0);
  assert_non_null(setlocale(LC_NUMERIC, "comma"));
}

static void leave_comma_locale(void) {
  char command[256];
  setlocale(LC_ALL, "C");
  unsetenv("LOCPATH");
  snprintf(command, sizeof command, "cd %s && rm -rf comma charmap definition", directory);
  assert_int_equal(system(command), 0);
}

static void a_locale_with_decimal_commas_changes_nothing(void **state) {
  if (system("command -v localedef >/dev/null 2>&1") != 0) skip(); /* not glibc */
  enter_comma_locale();
  assert_string_equal(localeconv()->decimal_point, ",");
  assert_true(strtod("1,5", NULL) == 1.5); /* the C library does obey it */
  char text[32];
  assert_int_equal(fmm_format_number(text, -4.5), 4);
  assert_string_equal(text, "-4.5");
  assert_int_equal(FMM_FAIL(FMM_ERR_INPUT, "%.2f", 1.5), FMM_ERR_INPUT);
  assert_string_equal(fmm_last_error(), "1.50");
  fmm_trace trace = {0};
  char *json = NULL;
  size_t length;
  fmm_trace_add(&trace, "cpu", "up", 1.0, 1.5);
  assert_ok(fmm_trace_json(&trace, &json, &length));
  assert_non_null(strstr(json, "\"ts\": 0.000, \"dur\": 500000.000}"));
  FMM_FREE(&json);
  assert_reads(file_with("a.csv", "1,2,3,0.5\n-4.5,0.0050000000000000000000,6e10,-0.25\n"), 2, 1, two_points, two_densities);
  leave_comma_locale();
}

static void failing_allocations_and_reads_leak_nothing(void **state) {
  const char *path = file_with("a.csv", "1,2,3,0.5\n-4.5,5e-3,6e10,-0.25\n");
  size_t held = fmm_memory_now();
  fmm_input in = {0};
  for (int n = 1; n <= 4; n++) {
    fmm_memory_fail_at(n);
    assert_int_equal(fmm_input_read(path, &in), FMM_ERR_MEMORY);
    assert_int_equal(fmm_memory_now(), held);
  }
  fmm_memory_fail_at(0);
  fmm_file_fail_at(2, 5 /* EIO */);
  assert_int_equal(fmm_input_read(path, &in), FMM_ERR_INPUT);
  fmm_file_fail_at(0, 0);
  assert_int_equal(fmm_memory_now(), held);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(csv_reads_every_separator_header_and_line_end),
                                     cmocka_unit_test(malformed_csv_is_refused_with_its_line),
                                     cmocka_unit_test(bytes_that_are_no_text_are_quoted_by_their_numbers),
                                     cmocka_unit_test(values_that_are_not_finite_are_named_with_their_line),
                                     cmocka_unit_test(xyz_reads_symbols_densities_and_point_clouds),
                                     cmocka_unit_test(malformed_xyz_is_refused_with_its_line),
                                     cmocka_unit_test(pqr_reads_the_last_five_fields_of_atoms_only),
                                     cmocka_unit_test(npy_reads_versions_types_and_orders),
                                     cmocka_unit_test(malformed_npy_is_refused_with_its_byte_or_entry),
                                     cmocka_unit_test(unknown_suffixes_list_the_known_ones),
                                     cmocka_unit_test(densities_alone_are_read_and_counted),
                                     cmocka_unit_test(numbers_are_correctly_rounded_and_strict),
                                     cmocka_unit_test(a_locale_with_decimal_commas_changes_nothing),
                                     cmocka_unit_test(failing_allocations_and_reads_leak_nothing)};
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
