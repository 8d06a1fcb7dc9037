"""What counts as an include directive: every case is also asked of the real preprocessor."""

from __future__ import annotations

import time

from tasks.closure.directives import Directive, scan
from tests.closure.forest import Forest


def test_a_plain_include_counts(forest: Forest) -> None:
    assert forest.exactly('#include "a.h"\n') == {"a.h"}


def test_blanks_may_stand_around_the_hash(forest: Forest) -> None:
    assert forest.exactly(' \t#\v \f include\t"a.h"\n') == {"a.h"}


def test_no_blank_is_needed_before_the_name(forest: Forest) -> None:
    assert forest.exactly('#include"a.h"\n#include<b.h>\n', "-I.") == {"a.h", "b.h"}


def test_the_last_line_needs_no_newline(forest: Forest) -> None:
    assert forest.exactly('#include "a.h"') == {"a.h"}


def test_windows_line_ends_count(forest: Forest) -> None:
    assert forest.exactly('#include "a.h"\r\n#include <b.h>\r\n', "-I.") == {"a.h", "b.h"}


def test_a_byte_order_mark_hides_nothing_behind_the_first_line(forest: Forest) -> None:
    assert forest.exactly(b'\xef\xbb\xbf\n#include "a.h"\n') == {"a.h"}


def test_the_digraph_of_the_hash_counts(forest: Forest) -> None:
    assert forest.exactly('%:include "a.h"\n') == {"a.h"}


def test_the_trigraph_of_the_hash_counts_where_the_standard_has_it(forest: Forest) -> None:
    assert forest.exactly('??=include "a.h"\n', "-std=c++14") == {"a.h"}


def test_import_counts_as_include(forest: Forest) -> None:
    assert forest.exactly('#import "a.h"\n') == {"a.h"}


def test_an_import_behind_the_last_include_counts(forest: Forest) -> None:
    assert forest.exactly('#include "a.h"\nint i;\n#import "b.h"\n') == {"a.h", "b.h"}


def test_a_word_that_begins_like_include_is_none() -> None:
    assert scan(b'#included "a.h"\n#include_once "b.h"\n').directives == ()


def test_include_within_a_line_is_no_directive(forest: Forest) -> None:
    assert forest.exactly('int i; \n#define X #include "a.h"\n') == set()


def test_text_behind_the_name_is_ignored(forest: Forest) -> None:
    assert forest.exactly('#include "a.h" // "b.h"\n#include "c.h" /* <b.h> */\n') == {"a.h", "c.h"}


def test_a_backslash_joins_lines_within_a_word(forest: Forest) -> None:
    assert forest.exactly('#inc\\\nlude "a\\\n.h"\n') == {"a.h"}


def test_blanks_may_follow_the_backslash_that_joins_lines(forest: Forest) -> None:
    assert forest.exactly('#include \\ \t\n"a.h"\n') == {"a.h"}


def test_a_backslash_joins_windows_lines(forest: Forest) -> None:
    assert forest.exactly('#include \\\r\n"a.h"\r\n') == {"a.h"}


def test_a_line_comment_hides_a_directive(forest: Forest) -> None:
    assert forest.exactly('// #include "a.h"\n#include "b.h"\n') == {"b.h"}


def test_a_joined_line_comment_hides_the_next_line(forest: Forest) -> None:
    assert forest.exactly('// what \\\n#include "a.h"\n#include "b.h"\n') == {"b.h"}


def test_a_block_comment_hides_directives(forest: Forest) -> None:
    assert forest.exactly('/*\n#include "a.h"\n * **/\n#include "b.h"\n') == {"b.h"}


def test_block_comments_do_not_nest(forest: Forest) -> None:
    assert forest.exactly('/* /* */\n#include "a.h"\n') == {"a.h"}


def test_a_comment_may_stand_before_the_hash_and_in_the_directive(forest: Forest) -> None:
    assert forest.exactly('/* x */ # /* y */ include /* z */ "a.h"\n') == {"a.h"}


def test_a_comment_may_carry_the_last_directive_over_lines(forest: Forest) -> None:
    assert forest.exactly('#include /* one\n two */ "a.h"\n') == {"a.h"}


def test_a_comment_that_ends_on_a_line_does_not_begin_it(forest: Forest) -> None:
    assert forest.exactly('int i; /*\n*/ #define X\n/*\n*/ #include "a.h"\n') == {"a.h"}


def test_a_slash_star_in_a_string_opens_no_comment(forest: Forest) -> None:
    assert forest.exactly('const char* p = "/*";\n#include "a.h"\nconst char* q = "*/";\n') == {"a.h"}


def test_an_escaped_quote_does_not_end_a_string(forest: Forest) -> None:
    assert forest.exactly('const char* p = "\\"/*";\n#include "a.h"\nconst char* q = "*/";\n') == {"a.h"}


def test_a_slash_star_in_a_character_opens_no_comment(forest: Forest) -> None:
    assert forest.exactly("int i = '/*';\n#include \"a.h\"\nint j = '*/';\n") == {"a.h"}


def test_a_quote_character_opens_no_string(forest: Forest) -> None:
    assert forest.exactly("char p = '\"'; /* \"\n#include \"a.h\"\n*/\n#include \"b.h\"\n") == {"b.h"}


def test_apostrophes_between_digits_open_no_character(forest: Forest) -> None:
    text = "int i = 1'000; int j = 0xf'f; /*\n#include \"a.h\"\n*/ int k = 1'0;\n#include \"b.h\"\n"
    assert forest.exactly(text) == {"b.h"}


def test_a_prefixed_character_is_one(forest: Forest) -> None:
    assert forest.exactly("auto i = u8'\"'; /* \"\n#include \"a.h\"\n*/\n#include \"b.h\"\n", "-std=c++17") == {"b.h"}


def test_an_apostrophe_without_an_end_hides_a_comments_opening(forest: Forest) -> None:
    assert forest.exactly("#if 0\ndon't /* do\n#endif\n#include \"a.h\"\n/* */\n") == {"a.h"}


def test_a_quote_without_an_end_hides_a_comments_opening(forest: Forest) -> None:
    assert forest.exactly('#if 0\n3.5" /* disks\n#endif\n#include "a.h"\n/* */\n') == {"a.h"}


def test_a_directive_in_a_raw_string_is_none(forest: Forest) -> None:
    assert forest.exactly('auto p = R"(\n#include "a.h"\n)";\n#include "b.h"\n') == {"b.h"}


def test_the_last_include_of_a_file_may_be_one_in_a_raw_string(forest: Forest) -> None:
    assert forest.exactly('#include "b.h"\nauto p = R"(\n#include "a.h"\n)";\n') == {"b.h"}


def test_a_raw_string_ends_at_its_own_fence(forest: Forest) -> None:
    assert forest.exactly('auto p = u8R"x(\n)"\n#include "a.h"\n)x";\n#include "b.h"\n') == {"b.h"}


def test_an_identifier_that_ends_in_r_begins_no_raw_string(forest: Forest) -> None:
    text = '#define FOOR\nconst char* p = FOOR"(";\n#include "a.h"\nconst char* q = ")";\n'
    assert forest.exactly(text) == {"a.h"}


def test_a_comments_marks_in_a_raw_string_are_text(forest: Forest) -> None:
    assert forest.exactly('auto p = R"(/*)";\n#include "a.h"\nauto q = R"(*/)";\n') == {"a.h"}


def test_two_slashes_in_a_headers_name_are_no_comment(forest: Forest) -> None:
    forest.write({"sub/d.h": ""})
    assert forest.exactly("#include <sub//d.h>\n", "-I.") == {"sub/d.h"}


def test_a_slash_star_in_a_headers_name_is_no_comment(forest: Forest) -> None:
    forest.write({"sub/*d.h": ""})
    assert forest.exactly('#include <sub/*d.h>\n#include "a.h"\n', "-I.") == {"sub/*d.h", "a.h"}


def test_a_backslash_in_a_headers_name_escapes_nothing(forest: Forest) -> None:
    # The compiler's rule for `w\` cannot be told from a joined line, so it is not asked for it.
    forest.write({"w\\": "", "u.cc": '#include "w\\"\n#include "a.h"\n'})
    assert forest.closure() == {"w\\", "a.h"}


def test_names_with_blanks_dollars_hashes_colons_and_percents_are_found(forest: Forest) -> None:
    names = ["sp ace.h", "do$lar.h", "ha#sh.h", "co:lon.h", "per%cent.h", "quo'te.h"]
    forest.write(dict.fromkeys(names, ""))
    assert forest.exactly("".join(f'#include "{name}"\n' for name in names)) == set(names)


def test_a_name_that_is_no_utf_8_is_found(forest: Forest) -> None:
    (forest.root / "ü.h").write_bytes(b"")
    (forest.root.joinpath(b"\xfc.h".decode(errors="surrogateescape"))).write_bytes(b"")
    forest.write({"u.cc": b'#include "\xfc.h"\n'})
    assert forest.closure() == {b"\xfc.h".decode(errors="surrogateescape")}


def test_includes_in_every_branch_count(forest: Forest) -> None:
    text = '#if __CUDA_ARCH__ >= 900\n#include "a.h"\n#elif 0\n#include "b.h"\n#else\n#include "c.h"\n#endif\n'
    assert forest.at_least(text) == {"a.h", "b.h", "c.h"}


def test_has_include_counts_where_the_header_exists(forest: Forest) -> None:
    text = '#if __has_include("a.h") && __has_include(<b.h>) && !__has_include("none.h")\n#endif\n'
    assert forest.at_least(text, "-I.") == {"a.h", "b.h"}


def test_has_include_under_another_name_counts(forest: Forest) -> None:
    text = '#define HAS(x) __has_include(x)\n#if HAS(<a.h>)\n#include "b.h"\n#endif\n'
    assert forest.at_least(text, "-I.") == {"a.h", "b.h"}


def test_two_slashes_in_has_include_are_no_comment(forest: Forest) -> None:
    forest.write({"sub/d.h": ""})
    assert forest.at_least("#if __has_include(<sub//d.h>)\n#endif\n", "-I.") == {"sub/d.h"}


def test_asking_whether_has_include_exists_asks_for_no_header(forest: Forest) -> None:
    text = "#ifndef __has_include\n#define __has_include(x) 0\n#endif\n#if defined(__has_include)\n#endif\n"
    forest.write({"u.cc": text})
    assert forest.resolve().unresolved == ()


def test_each_directive_is_kept_once_and_in_order() -> None:
    found = scan(b'#include "b.h"\n#include <a.h>\n#include "b.h"\n#include_next <a.h>\n').directives
    assert found == (Directive('"', "b.h"), Directive("<", "a.h"), Directive("<", "a.h", next=True))


def test_a_file_without_directives_has_none() -> None:
    assert scan(b"int included = 0; // important\n").directives == ()


def test_a_large_table_behind_the_includes_costs_no_more_than_reading_it() -> None:
    table = b'#include "a.h"\nconst char t[] = {' + b"'\\x1f', 0x12, " * 1_000_000 + b"};\n"
    started = time.perf_counter()
    assert scan(table).directives == (Directive('"', "a.h"),)
    assert time.perf_counter() - started < 1.0
