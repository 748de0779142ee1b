"""The settings file: what is in it is read as the flags take it, and whatever else it is, is said as an InputError."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apportion.commands.config_file import read_settings
from apportion.core.errors import InputError

KNOWN = {"listen", "check_headers", "alone"}


def test_values_are_text_as_written(tmp_path: Path) -> None:
    """With dashes or underscores; the flags turn the text into what they take."""
    path = tmp_path / "settings.yaml"
    path.write_text("listen: 127.0.0.1:7000\ncheck-headers: 'tenant=X-Tenant'\nalone: true\n")
    assert read_settings(str(path), KNOWN) == {
        "listen": "127.0.0.1:7000",
        "check_headers": "tenant=X-Tenant",
        "alone": "true",
    }


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "is empty"),
        ("listen: !!int x\n", "the tag "),
        ("listen: 2001-99-99\nlisten: b\n", "the key `listen` is here twice"),
        ("listen: " + "[" * 20 + "\n", "nested more than 16 deep"),
        ("listen: {a: 1}\n", "listen: one value is wanted"),
        ("listen:\n", "listen: one value is wanted"),
        ('listen: "a\\0b"\n', "a value is printable text"),
        ("listen: &a x\n", "is not read in a settings file"),
        ("listen: [\n", "not valid YAML"),
        ("a" * (1 << 20) + "a", "larger than"),
        ("listn: x\n", "did you mean 'listen'?"),
    ],
)
def test_what_is_no_setting_is_said(tmp_path: Path, text: str, said: str) -> None:
    """With the file's name."""
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_settings(str(path), KNOWN)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A pipe would be waited on for ever, a device never ends."""
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero", str(tmp_path), "a\0b"):
        with pytest.raises(InputError, match=r"plain file|Is a directory|null byte"):
            read_settings(path, KNOWN)
