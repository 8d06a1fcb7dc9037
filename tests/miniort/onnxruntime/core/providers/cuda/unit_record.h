// Leaves in every unit's object which unit it is and which revision of each watched header it was compiled with.
//
// A watched header NAME.h says
//   #define MINIORT_<NAME in capitals>_REVISION <digits>
//   MINIORT_WATCHED_HEADER(NAME, MINIORT_<NAME in capitals>_REVISION)
// Host code keeps it in the section `miniort_units`, device code as the name `miniort_rev_<NAME>_<digits>`. Nothing
// else refers to either: they say what this one object was compiled from, and nothing about the others.
#pragma once

#define MINIORT_TEXT_(x) #x
#define MINIORT_TEXT(x) MINIORT_TEXT_(x)
#define MINIORT_JOIN_(a, b, c, d) a##b##c##d
#define MINIORT_JOIN(a, b, c, d) MINIORT_JOIN_(a, b, c, d)

#if defined(__CUDACC__)
#define MINIORT_DEVICE __device__
#else
#define MINIORT_DEVICE
#endif

// A record is three C strings behind one another: source file, header, revision. The last two are empty in the
// record of the unit itself.
#define MINIORT_RECORD(name, text) \
  static const char* const name __attribute__((used, section("miniort_units"))) = __BASE_FILE__ "\0" text

// The header's name is pasted and quoted as it stands, the revision as what it expands to.
#define MINIORT_WATCHED_HEADER(header, revision)                                          \
  MINIORT_RECORD(miniort_record_of_##header, #header "\0" MINIORT_TEXT(revision));        \
  static MINIORT_DEVICE __attribute__((used)) int MINIORT_JOIN(miniort_rev_, header, _, revision) = 1;

MINIORT_RECORD(miniort_record_of_unit, "\0");
