"""Google's own client for Cloud Storage drives the stand-in: generations, preconditions, uploads in parts."""

import sys

from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from refusal import refused

BASE = sys.argv[1].rstrip("/")
client = storage.Client(
    project="p", credentials=AnonymousCredentials(), client_options=ClientOptions(api_endpoint=BASE)
)
bucket = client.get_bucket("b")


def generations():
    blob = bucket.blob("state/gpu 1.json")
    blob.metadata = {"owner": "a"}
    blob.upload_from_string('{"n": 1}', content_type="application/json", if_generation_match=0)
    first = blob.generation
    again = bucket.blob("state/gpu 1.json")
    refused(exceptions.PreconditionFailed, lambda: again.upload_from_string("x", if_generation_match=0))
    again.upload_from_string('{"n": 2}', if_generation_match=first)
    assert again.generation > first
    refused(exceptions.PreconditionFailed, lambda: blob.upload_from_string("x", if_generation_match=first))
    read = bucket.get_blob("state/gpu 1.json")
    assert read.size == 8 and read.metageneration == 1 and read.generation == again.generation
    # Checksums are compared by the client.
    assert read.download_as_bytes(checksum="md5") == b'{"n": 2}'
    assert read.download_as_bytes(checksum="crc32c", start=1, end=3) == b'"n"'
    refused(exceptions.PreconditionFailed, lambda: read.download_as_bytes(if_generation_match=first))
    refused(exceptions.PreconditionFailed, lambda: read.delete(if_generation_match=first))
    read.metadata = {"owner": "b"}
    read.patch()
    assert read.metageneration == 2
    read.delete(if_generation_match=read.generation)
    assert bucket.get_blob("state/gpu 1.json") is None
    refused(exceptions.NotFound, read.delete)


def in_parts():
    data = bytes(range(256)) * 2600
    blob = bucket.blob("big/one", chunk_size=256 << 10)
    with blob.open("wb", if_generation_match=0) as out:
        out.write(data)
    assert bucket.blob("big/one").download_as_bytes() == data
    session = bucket.blob("big/two").create_resumable_upload_session(size=len(data), if_generation_match=0)
    assert session.startswith(f"{BASE}/upload/storage/v1/b/b/o?"), session
    http = client._http
    part = 256 << 10
    total = len(data)
    arrived = http.put(session, data=data[:part], headers={"content-range": f"bytes 0-{part - 1}/{total}"})
    assert arrived.status_code == 308 and arrived.headers["range"] == f"bytes=0-{part - 1}", arrived
    asked = http.put(session, headers={"content-range": f"bytes */{total}"})
    assert asked.status_code == 308 and asked.headers["range"] == f"bytes=0-{part - 1}"
    rest = http.put(session, data=data[part:], headers={"content-range": f"bytes {part}-{total - 1}/{total}"})
    assert rest.status_code == 200, rest.text
    done = http.put(session, headers={"content-range": f"bytes */{total}"})
    assert done.status_code == 200 and done.json()["generation"] == rest.json()["generation"]
    assert bucket.blob("big/two").download_as_bytes() == data
    refused(exceptions.PreconditionFailed, lambda: bucket.blob("big/two").create_resumable_upload_session(if_generation_match=0))


def lists():
    for name in ("a/1", "a/2", "a/b/3", "c"):
        bucket.blob(name).upload_from_string(name)
    assert [blob.name for blob in bucket.list_blobs(prefix="a/", page_size=1)] == ["a/1", "a/2", "a/b/3"]
    found = bucket.list_blobs(prefix="a/", delimiter="/")
    assert [blob.name for blob in found] == ["a/1", "a/2"] and found.prefixes == {"a/b/"}
    assert list(bucket.list_blobs(prefix="z")) == []
    refused(exceptions.NotFound, lambda: list(client.list_blobs("no-such-bucket")))
    refused(exceptions.NotFound, lambda: client.get_bucket("no-such-bucket"))


for step in (generations, in_parts, lists):
    step()
    print(f"{step.__name__}: right")
