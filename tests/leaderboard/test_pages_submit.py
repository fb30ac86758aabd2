import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from leaderboard.models import Submission
from tests.leaderboard.factories import KERNEL
from tests.leaderboard.reading import Page

VALID = {
    "problem": "gemm_n7168_k5120",
    "target": "h200",
    "language": "cuda",
    "binding": "c",
    "name": "first try",
    "description": "tiles",
    "entry_file": "",
    "source": KERNEL,
}


@pytest.fixture
def signed_in(client: Client, alice: User, problems) -> Client:
    client.force_login(alice)
    return client


def test_it_asks_a_visitor_to_sign_in(client: Client, problems):
    response = client.get("/submit/")
    assert response["Location"] == "/sign-in/?next=/submit/"


def test_a_pasted_triton_kernel_is_kept_as_python(signed_in: Client):
    signed_in.post("/submit/", {**VALID, "language": "triton", "source": "def run(A, B, C): pass"})
    one = Submission.objects.get()
    assert one.language == "triton"
    assert one.candidate.entry_file == "kernel.py"
    text = signed_in.get(f"/submissions/{one.id}/sources/1/")
    assert f'filename="{one.id}_1.py.txt"' in text["Content-Disposition"]


def test_it_takes_a_pasted_kernel_and_leads_to_its_page(signed_in: Client, alice: User):
    response = signed_in.post("/submit/", {**VALID, "source": KERNEL.replace("\n", "\r\n")})
    one = Submission.objects.get()
    assert (response.status_code, response["Location"]) == (302, f"/submissions/{one.id}/")
    assert one.entrant.user == alice
    assert one.name == "first try"
    assert [(s.path, s.content) for s in one.candidate.sources] == [("kernel.cu", KERNEL)]


def test_it_takes_uploaded_files(signed_in: Client):
    files = [
        SimpleUploadedFile("gemm.cu", b'#include "tile.cuh"\n' + KERNEL.encode()),
        SimpleUploadedFile("tile.cuh", b"#define TILE 16\n"),
    ]
    signed_in.post("/submit/", {**VALID, "source": "", "files": files})
    candidate = Submission.objects.get().candidate
    assert [source.path for source in candidate.sources] == ["gemm.cu", "tile.cuh"]
    assert candidate.entry_file == "gemm.cu"


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfint x;\r\n",
        b"#define A 1 \\\r\n  + 2\r\n",
        b"#define A 1 \\ \n  + 2\n",
        "// caf\u00e9\n".encode(),
    ],
    ids=["byte-order mark", "CRLF", "backslash and space", "accent"],
)
def test_it_keeps_every_byte_of_an_uploaded_file(signed_in: Client, data: bytes):
    upload = SimpleUploadedFile("kernel.cu", data)
    answer = signed_in.post("/submit/", {**VALID, "source": "", "files": upload})
    one = Submission.objects.get()
    assert one.candidate.sources[0].content.encode() == data
    assert signed_in.get(f"{answer['Location']}sources/1/").content == data


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"source": ""}, "Paste a kernel here, or choose files below."),
        ({"name": ""}, "This field is required."),
        ({"problem": "gemm"}, "There is no problem “gemm”. Pick one of the list."),
        ({"target": "a100"}, "There is no target “a100”. Pick one of the list."),
        (
            {"language": "cpp"},
            "'cpp' is not allowed on h200; allowed: cuda",
        ),
        (
            {"target": "host", "language": "cpp"},
            "'host' is not allowed; gemm_n7168_k5120 is not offered there",
        ),
        ({"entry_file": "../x.cu"}, "source path '../x.cu': '..' is not allowed"),
    ],
)
def test_it_keeps_what_was_typed_and_says_what_is_wrong(
    signed_in: Client, changes: dict[str, str], text: str
):
    page = Page(signed_in.post("/submit/", {**VALID, **changes}))
    assert page.status == 422
    assert text in page.text
    assert "Nothing was submitted." in page.text
    assert "tiles" in page.text
    assert Submission.objects.count() == 0


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"int x;\xff\n", "kernel.cu: not UTF-8, offset 6"),
        ("int x;".encode("utf-16"), "kernel.cu: file is UTF-16"),
        (b"int x;\x00", "kernel.cu: NUL character at offset 6"),
        (b"x" * (1 << 20) + b"y", "The files hold 1048577 bytes, at most 1048576."),
    ],
)
def test_it_refuses_files_that_are_no_sources(signed_in: Client, data: bytes, text: str):
    upload = SimpleUploadedFile("kernel.cu", data)
    page = Page(signed_in.post("/submit/", {**VALID, "source": "", "files": upload}))
    assert page.status == 422
    assert text in page.text


def test_it_ties_hints_and_errors_to_their_fields(signed_in: Client):
    page = Page(signed_in.post("/submit/", {**VALID, "name": ""}))
    described = next(attrs for _, attrs in page.tags if attrs.get("id") == "id_name")
    assert described["aria-invalid"] == "true"
    for name in described["aria-describedby"].split():
        assert name in page.attributes("id")
    assert len(described["aria-describedby"].split()) == 2
    assert "Browsers forget chosen files" not in page.text


def test_it_asks_to_choose_files_again(signed_in: Client):
    upload = SimpleUploadedFile("kernel.cu", b"\xff")
    page = Page(signed_in.post("/submit/", {**VALID, "source": "", "files": upload}))
    assert "Browsers forget chosen files, so choose them again." in page.text


def test_it_refuses_both_a_paste_and_a_file(signed_in: Client):
    upload = SimpleUploadedFile("kernel.cu", KERNEL.encode())
    page = Page(signed_in.post("/submit/", {**VALID, "files": upload}))
    assert "Both pasted text and files were given; send one of them." in page.text


def test_it_leads_to_the_first_result_of_the_same_kernel(signed_in: Client):
    first = signed_in.post("/submit/", VALID)
    second = signed_in.post("/submit/", VALID)
    assert second["Location"] == first["Location"]
    page = Page(signed_in.get(second["Location"]))
    assert "You submitted the same sources for gemm_n7168_k5120 on h200 before" in page.text
    assert Submission.objects.count() == 1


def test_it_says_when_too_many_are_in_flight(signed_in: Client, settings):
    settings.PTXBOARD_IN_FLIGHT_LIMIT = 1
    signed_in.post("/submit/", VALID)
    page = Page(signed_in.post("/submit/", {**VALID, "source": KERNEL + "// 2\n"}))
    assert "1 of your submissions are queued or running, at most 1" in page.text


def test_it_starts_from_the_link_of_a_board(signed_in: Client):
    page = Page(signed_in.get("/submit/?problem=gemm_n256_k256&target=host"))
    chosen = [attrs["value"] for tag, attrs in page.tags if tag == "option" and "selected" in attrs]
    assert chosen == ["gemm_n256_k256", "host", "cpp"]


def test_it_needs_the_forgery_token(alice: User, problems):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)
    page = Page(strict.post("/submit/", VALID))
    assert page.status == 403
    assert "The form was not accepted" in page.text


def test_it_says_how_much_of_the_quota_is_in_flight(signed_in: Client, settings):
    settings.PTXBOARD_IN_FLIGHT_LIMIT = 2
    assert "0 of 2 in flight." in Page(signed_in.get("/submit/")).text
    signed_in.post("/submit/", VALID)
    assert "1 of 2 in flight." in Page(signed_in.get("/submit/")).text
    signed_in.post("/submit/", {**VALID, "source": KERNEL + "// more"})
    page = Page(signed_in.get("/submit/"))
    assert "2 of 2 in flight: wait for one to end, or cancel one of yours." in page.text
    Submission.objects.update(state="CANCELLED")
    assert "0 of 2 in flight." in Page(signed_in.get("/submit/")).text


def test_one_file_too_many_is_told_on_the_form_with_what_was_typed(signed_in: Client):
    files = [SimpleUploadedFile(f"h{number}.h", b"int x;") for number in range(65)]
    page = Page(signed_in.post("/submit/", {**VALID, "source": "", "files": files}))
    assert page.status == 422
    assert "65 files, at most 64; merge some of them." in page.text
    assert VALID["name"] in page.html
