"""Settings: `fmha.toml`, environment and command line become one frozen value, or one clear error.

Knows nothing of checkouts: a key that was not given stays ``None`` and is discovered by others.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tasks.errors import UserError

__all__ = ["ENV_PREFIX", "RUN_OPTIONS", "SETTING_KEYS", "Settings", "load"]

ENV_PREFIX = "FMHA_"

# Options of one run: command line only, so that no file or shell profile can switch them on.
RUN_OPTIONS = ("dry_run", "wait", "yes", "compiler", "generator")

DEFAULT_HEADERS = ("onnxruntime/contrib_ops/cuda/bert/cutlass_fmha/*.h",)

# Memory-efficient attention, and the boundary at which the dispatch turns to Flash.
DEFAULT_TEST_FILTER = (
    "AttentionTest.*MEA*",
    "AttentionTest.*ForceFlashDisabled*",
    "AttentionTest.*FlashStructural*",
    "ContribOpAttentionTest.*MEA*",
)


class Settings(NamedTuple):
    """What the user decided. Paths are absolute; ``None`` means "discover it"."""

    ort_root: Path | None = None
    build_dir: Path | None = None
    build_command: tuple[str, ...] | None = None
    jobs: int | None = None
    headers: tuple[str, ...] = DEFAULT_HEADERS
    link_mode: str = "auto"
    force: str = "touch"
    test_binary: str = "onnxruntime_provider_test"
    test_filter: tuple[str, ...] | None = None
    expected_paths: tuple[tuple[str, str], ...] | None = None
    require_archs: tuple[str, ...] = ()
    test_launcher: tuple[str, ...] = ()
    test_timeout_s: float = 120.0
    run_timeout_s: float = 1800.0
    test_env_keep: tuple[str, ...] = ()
    min_free_gb: float | None = None
    stale_after_days: float = 30.0
    options: Mapping[str, str] = MappingProxyType({})
    start_dir: Path = Path()
    config_file: Path | None = None

    def flag(self, option: str) -> bool:
        """Whether the run option (such as ``dry_run=1``) is switched on."""
        return self.options.get(option, "").lower() in ("1", "true", "yes", "on")


class _Raw(NamedTuple):
    """One value as it was given: where, as what, and the folder that relative paths start from."""

    key: str
    value: Any
    where: str
    base: Path
    typed: bool = False  # TOML has types; the environment and the command line have only text

    def error(self, wanted: str, example: str) -> UserError:
        return UserError(f"{self.where}: `{self.key}` must be {wanted}, not {self.value!r}.", f"{self.key} = {example}")


def _path(raw: _Raw) -> Path:
    if not isinstance(raw.value, str) or not raw.value.strip():
        raise raw.error("a path", '"/path/to/folder"')
    return Path(os.path.abspath(raw.base / Path(raw.value).expanduser()))


def _text(raw: _Raw) -> str:
    if not isinstance(raw.value, str) or not raw.value.strip():
        raise raw.error("a text", '"..."')
    return raw.value


def _words(raw: _Raw) -> tuple[str, ...]:
    """A list in TOML; in the environment and on the command line, split as a shell splits words."""
    if isinstance(raw.value, str) and not raw.typed:
        try:
            return tuple(shlex.split(raw.value))
        except ValueError as error:
            raise UserError(f"{raw.where}: `{raw.key}`: {error} in {raw.value!r}.", "balance the quotes") from None
    if isinstance(raw.value, list) and all(isinstance(item, str) for item in raw.value):
        return tuple(raw.value)
    raise raw.error("a list of texts", '["one", "two"]')


def _globs(raw: _Raw) -> tuple[str, ...]:
    words = _words(raw)
    if not words or not all(words):
        raise UserError(f"{raw.where}: `headers` is empty: there is nothing to watch.",
                        f'headers = ["{DEFAULT_HEADERS[0]}"]')
    for word in words:
        if Path(word).is_absolute() or ".." in Path(word).parts:
            raise UserError(f"{raw.where}: `headers` are globs under ort_root, not {word!r}.",
                            f'headers = ["{DEFAULT_HEADERS[0]}"]')
    return words


def _number(raw: _Raw, wanted: str = "a number above 0") -> float:
    # bool is an int in Python, but `jobs = true` is a mistake; so is `jobs = "4"` in a typed file.
    accepted = (int, float) if raw.typed else (str,)
    if isinstance(raw.value, accepted) and not isinstance(raw.value, bool):
        try:
            number = float(raw.value)
        except ValueError:
            number = -1.0
        if 0 < number < float("inf"):
            return number
    raise raw.error(wanted, "4")


def _count(raw: _Raw) -> int:
    wanted = "a whole number above 0"
    number = _number(raw, wanted)
    if number != int(number):
        raise raw.error(wanted, "4")
    return int(number)


def _choice(*allowed: str) -> Callable[[_Raw], str]:
    def convert(raw: _Raw) -> str:
        if raw.value not in allowed:
            raise raw.error("one of " + ", ".join(allowed), f'"{allowed[0]}"')
        return str(raw.value)

    return convert


_PATHS = ("mea", "flash", "any", "none")


def _paths_by_pattern(raw: _Raw) -> tuple[tuple[str, str], ...]:
    example = '{ "*MEA*" = "mea", "*_CPU" = "none" }'
    if isinstance(raw.value, Mapping):
        pairs = [(str(pattern), path) for pattern, path in raw.value.items()]
    else:
        pairs = []
        for word in _words(raw):
            pattern, separator, path = word.rpartition("=")
            if not separator:
                raise raw.error("words PATTERN=PATH", example)
            pairs.append((pattern, path))
    for pattern, path in pairs:
        if not pattern or path not in _PATHS:
            raise raw.error("a map from test pattern to one of " + ", ".join(_PATHS), example)
    return tuple(pairs)


_CONVERTERS: dict[str, Callable[[_Raw], Any]] = {
    "ort_root": _path,
    "build_dir": _path,
    "build_command": _words,
    "jobs": _count,
    "headers": _globs,
    "link_mode": _choice("auto", "shared", "static"),
    "force": _choice("touch", "remove"),
    "test_binary": _text,
    "test_filter": _words,
    "expected_paths": _paths_by_pattern,
    "require_archs": _words,
    "test_launcher": _words,
    "test_timeout_s": _number,
    "run_timeout_s": _number,
    "test_env_keep": _words,
    "min_free_gb": _number,
    "stale_after_days": _number,
}
SETTING_KEYS = tuple(_CONVERTERS)


def _unknown(key: str, where: str, known: tuple[str, ...]) -> UserError:
    import difflib

    near = difflib.get_close_matches(key.lower(), known, n=1)
    mend = f"did you mean `{near[0]}`?" if near else "known are: " + ", ".join(known)
    return UserError(f"{where}: unknown setting `{key}`.", mend)


def _read_toml(path: Path) -> Mapping[str, Any]:
    import tomli

    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}.", "mend it, or unset FMHA_CONFIG") from None
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid TOML: {error}.", f"edit {path}") from None


def _config_file(project: Path, environ: Mapping[str, str], start_dir: Path) -> Path | None:
    named = environ.get(ENV_PREFIX + "CONFIG")
    if named:
        return Path(os.path.abspath(start_dir / Path(named).expanduser()))
    default = project / "fmha.toml"
    return default if default.exists() else None


def _gather(config: Path | None, environ: Mapping[str, str], command_line: Mapping[str, str],
            start_dir: Path) -> tuple[dict[str, _Raw], dict[str, str]]:
    """All raw values, later sources over earlier ones, and the run options."""
    raws: dict[str, _Raw] = {}
    if config is not None:
        for key, value in _read_toml(config).items():
            if key not in _CONVERTERS:
                raise _unknown(key, str(config), SETTING_KEYS)
            raws[key] = _Raw(key, value, str(config), config.parent, typed=True)
    for name, value in environ.items():
        key = name[len(ENV_PREFIX):].lower()
        if not name.startswith(ENV_PREFIX) or name == ENV_PREFIX + "CONFIG":
            continue
        if key not in _CONVERTERS or name != ENV_PREFIX + key.upper():
            raise _unknown(key, f"environment variable {name}", SETTING_KEYS)
        raws[key] = _Raw(key, value, f"environment variable {name}", start_dir)
    options: dict[str, str] = {}
    for key, value in command_line.items():
        if key in RUN_OPTIONS:
            options[key] = value
        elif key in _CONVERTERS:
            raws[key] = _Raw(key, value, "command line", start_dir)
        else:
            raise _unknown(key, "command line", SETTING_KEYS + RUN_OPTIONS)
    return raws, options


def load(project: Path, environ: Mapping[str, str], command_line: Mapping[str, str], start_dir: Path) -> Settings:
    """Merge the three sources; raise :class:`UserError` for anything that is not a known, valid value.

    `project` is the folder of `dodo.py`; relative paths start from the folder of the file that
    names them, and from `start_dir` in the environment and on the command line.
    """
    config = _config_file(project, environ, start_dir)
    raws, options = _gather(config, environ, command_line, start_dir)
    values = {key: _CONVERTERS[key](raw) for key, raw in raws.items()}
    return Settings(**values, options=options, start_dir=start_dir, config_file=config)
