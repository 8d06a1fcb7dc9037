"""Settings: three sources, one value, or one line that says what is wrong and how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tasks.errors import UserError
from tasks.session import Session
from tasks.settings import DEFAULT_HEADERS, RUN_OPTIONS, SETTING_KEYS, Settings, load


class Given:
    """What a user has decided: `fmha.toml`, environment and command line."""

    def __init__(self, project: Path) -> None:
        self.project = project
        self.start = project / "start"
        self.start.mkdir()

    def file(self, text: str | bytes, name: str = "fmha.toml") -> Given:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self

    def load(self, environ: dict[str, str] | None = None, **command_line: str) -> Settings:
        return load(self.project, environ or {}, command_line, self.start)

    def refusal(self, environ: dict[str, str] | None = None, **command_line: str) -> str:
        """The error, which must be short and say how to mend it."""
        with pytest.raises(UserError) as told:
            self.load(environ, **command_line)
        assert told.value.mend
        assert len(str(told.value).splitlines()) <= 3
        return str(told.value)


@pytest.fixture
def given(tmp_path: Path) -> Given:
    return Given(tmp_path)


def test_without_any_source_everything_is_the_default(given: Given) -> None:
    assert given.load() == Settings(start_dir=given.start)
    assert given.load().headers == DEFAULT_HEADERS


def test_the_environment_wins_over_the_file_and_the_command_line_over_both(given: Given) -> None:
    given.file("jobs = 1\n")
    assert given.load().jobs == 1
    assert given.load({"FMHA_JOBS": "2"}).jobs == 2
    assert given.load({"FMHA_JOBS": "2"}, jobs="3").jobs == 3


def test_a_wrong_value_is_told_even_where_a_later_source_wins(given: Given) -> None:
    given.file("job = 1\n")
    assert "did you mean `jobs`?" in given.refusal(jobs="3")


def test_relative_paths_start_from_the_folder_of_the_file_that_names_them(given: Given) -> None:
    given.file('build_dir = "../b"\n', "conf/my.toml")
    environ = {"FMHA_CONFIG": str(given.project / "conf/my.toml")}
    assert given.load(environ).build_dir == given.project / "b"


def test_relative_paths_start_from_the_start_folder_elsewhere(given: Given) -> None:
    assert given.load({"FMHA_BUILD_DIR": "b"}).build_dir == given.start / "b"
    assert given.load(build_dir="../b").build_dir == given.project / "b"


def test_a_tilde_is_the_users_home(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert given.load(ort_root="~/onnxruntime").ort_root == Path("/home/me/onnxruntime")


def test_the_file_beside_dodo_is_read_by_default(given: Given) -> None:
    settings = given.file("jobs = 5\n").load()
    assert (settings.jobs, settings.config_file) == (5, given.project / "fmha.toml")


def test_another_file_is_named_from_the_start_folder(given: Given) -> None:
    given.file("jobs = 1\n").file("jobs = 7\n", "start/other.toml")
    assert given.load({"FMHA_CONFIG": "other.toml"}).jobs == 7


def test_an_empty_name_of_a_file_names_none(given: Given) -> None:
    assert given.file("jobs = 5\n").load({"FMHA_CONFIG": ""}).jobs == 5


def test_a_named_file_that_is_missing_is_told(given: Given) -> None:
    assert "No such file" in given.refusal({"FMHA_CONFIG": "none.toml"})


def test_a_folder_is_no_file(given: Given) -> None:
    (given.project / "fmha.toml").mkdir()
    assert "cannot be read" in given.refusal()


def test_a_typing_error_in_the_file_is_told_with_its_place(given: Given) -> None:
    assert "line 2" in given.file("jobs = 1\nforce touch\n").refusal()


def test_a_file_that_is_no_utf_8_is_told(given: Given) -> None:
    assert "not valid TOML" in given.file(b'test_binary = "\xff"\n').refusal()


def test_a_key_twice_is_told(given: Given) -> None:
    assert "not valid TOML" in given.file("jobs = 1\njobs = 2\n").refusal()


@pytest.mark.parametrize("near", ["header", "buildd_ir", "test-filter", "Jobs"])
def test_a_misspelt_key_is_told_with_the_nearest(given: Given, near: str) -> None:
    assert "did you mean" in given.file(f'"{near}" = 1\n').refusal()


def test_a_key_like_no_other_is_told_with_all_that_are_known(given: Given) -> None:
    told = given.file("zzzzzz = 1\n").refusal()
    assert all(key in told for key in SETTING_KEYS)


def test_a_misspelt_variable_is_told(given: Given) -> None:
    assert "FMHA_JOB" in given.refusal({"FMHA_JOB": "1"})


def test_a_variable_in_small_letters_is_told(given: Given) -> None:
    assert "FMHA_jobs" in given.refusal({"FMHA_jobs": "1"})


def test_other_programs_variables_are_ignored(given: Given) -> None:
    assert given.load({"JOBS": "1", "XFMHA_JOBS": "2", "FMHAX": "3"}).jobs is None


def test_a_misspelt_word_on_the_command_line_is_told(given: Given) -> None:
    assert "did you mean `jobs`?" in given.refusal(jbos="1")


@pytest.mark.parametrize("option", RUN_OPTIONS)
def test_options_of_a_run_come_from_the_command_line_alone(given: Given, option: str) -> None:
    assert given.load(**{option: "1"}).flag(option)
    assert "unknown setting" in given.refusal({f"FMHA_{option.upper()}": "1"})
    assert "unknown setting" in given.file(f"{option} = true\n").refusal()


@pytest.mark.parametrize("option", RUN_OPTIONS)
def test_a_mend_repeats_the_settings_of_a_run_and_none_of_its_options(tmp_path: Path, option: str) -> None:
    session = Session(tmp_path, tmp_path, {}, {"jobs": "2", option: "1"})
    assert session.command("rebuild_fmha") == "doit rebuild_fmha jobs=2"


@pytest.mark.parametrize(("text", "on"), [("1", True), ("yes", True), ("ON", True), ("True", True), ("0", False),
                                          ("", False), ("no", False)])
def test_an_option_of_a_run_is_on_for_these_words(given: Given, text: str, on: bool) -> None:
    assert given.load(wait=text).flag("wait") is on


def test_an_option_that_is_not_given_is_off(given: Given) -> None:
    assert not given.load().flag("wait")


def test_lists_are_split_as_a_shell_splits_words(given: Given) -> None:
    assert given.load(test_filter="'A.*' B.*\\ C").test_filter == ("A.*", "B.* C")
    assert given.load({"FMHA_TEST_LAUNCHER": 'taskset -c "0 1"'}).test_launcher == ("taskset", "-c", "0 1")


def test_an_empty_list_is_one(given: Given) -> None:
    assert given.load({"FMHA_TEST_FILTER": ""}).test_filter == ()


def test_quotes_without_an_end_are_told(given: Given) -> None:
    assert "balance the quotes" in given.refusal(test_filter="'A.*")


def test_a_list_in_the_file_is_a_list(given: Given) -> None:
    assert given.file('build_command = ["./b.sh", "{targets}"]\n').load().build_command == ("./b.sh", "{targets}")


@pytest.mark.parametrize("line", ['headers = "a.h"', "headers = [1]", "test_filter = {}", 'build_command = "./b.sh"'])
def test_a_list_in_the_file_must_be_one(given: Given, line: str) -> None:
    assert "a list of texts" in given.file(line + "\n").refusal()


def test_headers_must_not_be_empty(given: Given) -> None:
    assert "nothing to watch" in given.file("headers = []\n").refusal()
    assert "nothing to watch" in given.refusal(headers="''")


@pytest.mark.parametrize("pattern", ["/etc/*.h", "../*.h", "a/../../b.h"])
def test_headers_must_lie_in_the_checkout(given: Given, pattern: str) -> None:
    assert "under ort_root" in given.refusal(headers=pattern)


@pytest.mark.parametrize("line", ["jobs = 0", "jobs = -1", "jobs = 1.5", "jobs = true", 'jobs = "4"', "jobs = nan",
                                  "jobs = inf", "jobs = [1]"])
def test_jobs_is_a_whole_number_above_zero(given: Given, line: str) -> None:
    assert "a whole number above 0" in given.file(line + "\n").refusal()


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "four", "", "nan", "inf"])
def test_jobs_is_a_whole_number_as_text_too(given: Given, text: str) -> None:
    assert "a whole number above 0" in given.refusal(jobs=text)


def test_limits_may_be_fractions(given: Given) -> None:
    assert given.file("test_timeout_s = 0.5\nmin_free_gb = 3\n").load().test_timeout_s == 0.5


@pytest.mark.parametrize(("key", "allowed"), [("link_mode", "auto, shared, static"), ("force", "touch, remove")])
def test_a_choice_names_what_is_allowed(given: Given, key: str, allowed: str) -> None:
    assert allowed in given.refusal(**{key: "other"})


@pytest.mark.parametrize("line", ['ort_root = ""', "ort_root = 1", 'build_dir = "  "', 'test_binary = ""'])
def test_an_empty_path_or_name_is_told(given: Given, line: str) -> None:
    assert line.split()[0] in given.file(line + "\n").refusal()


def test_a_map_is_a_table_in_the_file(given: Given) -> None:
    given.file('[expected_paths]\n"*MEA*" = "mea"\n"*_CPU" = "none"\n')
    assert given.load().expected_paths == (("*MEA*", "mea"), ("*_CPU", "none"))


def test_a_map_is_words_elsewhere(given: Given) -> None:
    assert given.load(expected_paths="'A=B=mea' *=any").expected_paths == (("A=B", "mea"), ("*", "any"))


def test_the_order_of_a_map_stays(given: Given) -> None:
    patterns = given.load(expected_paths="z=mea a=flash m=any").expected_paths
    assert patterns is not None
    assert [pattern for pattern, _ in patterns] == ["z", "a", "m"]


@pytest.mark.parametrize("text", ["*MEA*", "*MEA*=cutlass", "=mea", "*MEA*="])
def test_a_map_must_lead_to_a_path_that_is_known(given: Given, text: str) -> None:
    assert "mea" in given.refusal(expected_paths=text)


def test_the_error_names_the_culprit(given: Given) -> None:
    assert "fmha.toml" in given.file('jobs = "x"\n').refusal()
    given.file("")
    assert "environment variable FMHA_JOBS" in given.refusal({"FMHA_JOBS": "x"})
    assert "command line" in given.refusal(jobs="x")


def test_settings_cannot_be_changed(given: Given) -> None:
    with pytest.raises(AttributeError):
        given.load().jobs = 3  # type: ignore[misc]


def test_an_error_is_its_cause_and_below_it_what_mends_it() -> None:
    assert str(UserError("cause", "mend")) == "cause\n  mend"
    assert str(UserError("cause")) == "cause"
