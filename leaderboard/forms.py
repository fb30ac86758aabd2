"""Forms of the pages. What a kernel may be is decided by the service that REST uses too."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from evaluator.records.candidate import (
    ENTRY_FILES,
    MAX_SOURCE_BYTES,
    MAX_SOURCE_FILES,
    Binding,
    Language,
)
from evaluator.targets import TARGETS
from leaderboard.models import Problem
from leaderboard.services.source_text import decode_source


def read_upload(upload: UploadedFile) -> tuple[str, str]:
    """(name, text); raises ValidationError that says where the file stops being UTF-8."""
    name = upload.name or "file"
    try:
        return name, decode_source(upload.read())
    except ValueError as error:
        raise forms.ValidationError(f"{name}: {error}") from error


class ManyFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class ManyFilesField(forms.FileField):
    """Zero or more uploads, cleaned to a list of (name, text)."""

    widget = ManyFilesInput

    def clean(self, data: Any, initial: Any = None) -> list[tuple[str, str]]:
        uploads: Sequence[UploadedFile] = data if isinstance(data, list | tuple) else [data]
        uploads = [upload for upload in uploads if upload]
        if len(uploads) > MAX_SOURCE_FILES:
            raise forms.ValidationError(
                f"{len(uploads)} files, at most {MAX_SOURCE_FILES}; merge some of them."
            )
        total = sum(upload.size or 0 for upload in uploads)
        if total > MAX_SOURCE_BYTES:
            raise forms.ValidationError(
                f"The files hold {total} bytes, at most {MAX_SOURCE_BYTES}."
            )
        return [read_upload(upload) for upload in uploads]


class SubmissionForm(forms.Form):
    """Sources come from one place: pasted into the page, or uploaded."""

    problem = forms.ChoiceField(
        error_messages={"invalid_choice": "There is no problem “%(value)s”. Pick one of the list."}
    )
    target = forms.ChoiceField(
        choices=[(target.slug, target.title) for target in TARGETS.values()],
        error_messages={"invalid_choice": "There is no target “%(value)s”. Pick one of the list."},
    )
    language = forms.ChoiceField(
        choices=[
            ("cuda", "CUDA C++ (.cu)"),
            ("triton", "Triton (.py)"),
            ("cpp", "C++ (.cpp)"),
        ],
        help_text="C++ is for the development target, CUDA and Triton for the others.",
    )
    binding = forms.ChoiceField(
        choices=[
            (Binding.C.value, "c: plain pointers"),
            (Binding.TVM_FFI.value, "tvm-ffi: TensorViews"),
        ],
        help_text="How the entry point takes its arguments. Triton has only c.",
    )
    name = forms.CharField(
        max_length=100, help_text="What the board calls it. At most 100 characters."
    )
    description = forms.CharField(
        max_length=4000, required=False, widget=forms.Textarea(attrs={"rows": 1})
    )
    source = forms.CharField(
        required=False,
        strip=False,
        help_text="UTF-8 text, at most 1 MiB. "
        "Stored as kernel.cu, kernel.py or kernel.cpp unless you name it below.",
        widget=forms.Textarea(
            attrs={"rows": 22, "class": "source", "spellcheck": "false", "autocapitalize": "off"}
        ),
    )
    files = ManyFilesField(
        required=False,
        help_text="UTF-8 sources instead of pasted text. Several are allowed, with headers.",
    )
    entry_file = forms.CharField(
        max_length=200,
        required=False,
        help_text="Needed only where several files could be compiled.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["problem"].choices = problem_choices()

    @property
    def had_files(self) -> bool:
        """Browsers do not send chosen files back with an error page, so the page says so."""
        return any(self.files.getlist("files")) if self.is_bound and self.files else False

    def clean_source(self) -> str:
        """Browsers send CRLF; the sources keep the line ends that people typed."""
        return str(self.cleaned_data["source"]).replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        pasted, files = cleaned.get("source"), cleaned.get("files")
        if pasted and files:
            self.add_error("files", "Both pasted text and files were given; send one of them.")
        elif not pasted and not files and "files" not in self.errors:
            self.add_error("source", "Paste a kernel here, or choose files below.")
        return cleaned

    @property
    def sources(self) -> list[tuple[str, str]]:
        """(path, text) of every file of a valid form."""
        if pasted := self.cleaned_data["source"]:
            language = Language(self.cleaned_data["language"])
            name = self.cleaned_data["entry_file"] or ENTRY_FILES[language]
            return [(name, pasted)]
        return list(self.cleaned_data["files"])


def problem_choices() -> list[tuple[str, list[tuple[str, str]]]]:
    rows = Problem.objects.current().values_list("name", "title", "development")
    groups: dict[bool, list[tuple[str, str]]] = {}
    for name, title, development in rows:
        groups.setdefault(development, []).append((name, f"{name}: {title}"))
    titles = {False: "Measured problems", True: "Small twins for development"}
    return [(titles[key], choices) for key, choices in sorted(groups.items())]


class TokenForm(forms.Form):
    label = forms.CharField(
        max_length=100, help_text="Where you will use it, such as “laptop” or “CI”."
    )
