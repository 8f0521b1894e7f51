"""No test reaches the network, whatever it calls, and nor does a program that it starts."""

import _socket
import socket
import subprocess
import sys
from urllib.request import urlopen

import pytest

from parsimon import datasets

OUTSIDE = "192.0.2.1"  # set aside for documentation (RFC 5737): it is nobody's
REFUSED = r"^A test tried to reach .*\. Tests never touch the network"

ATTEMPTS = {
    "a connection": lambda: socket.create_connection((OUTSIDE, 80), timeout=1),
    "a connection by IPv6": lambda: socket.create_connection(("2001:db8::1", 80), timeout=1),
    "a connection by name": lambda: socket.socket().connect(("parsimon.example", 80)),
    "a connection by way of C": lambda: _socket.socket().connect((OUTSIDE, 80)),
    "a datagram": lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"", (OUTSIDE, 53)),
    "a look-up": lambda: socket.getaddrinfo("parsimon.example", 443),
    "an old look-up": lambda: socket.gethostbyname("parsimon.example"),
    "a look-up in bytes": lambda: socket.getaddrinfo(b"parsimon.example", 443),
    "a reverse look-up": lambda: socket.gethostbyaddr(OUTSIDE),
    "a web page": lambda: urlopen("https://parsimon.example", timeout=1),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_outside_is_refused_with_a_sentence(attempt):
    with pytest.raises(RuntimeError, match=REFUSED):
        ATTEMPTS[attempt]()


@pytest.mark.filterwarnings("ignore:Invalid cache")  # as scikit-learn explains any error
def test_a_data_set_that_is_not_here_is_not_downloaded(tmp_path):
    with pytest.raises(RuntimeError, match=REFUSED):
        datasets.load_mnist(data_home=tmp_path)


def test_a_program_that_a_test_starts_is_refused_too():
    code = f"import socket; socket.create_connection(('{OUTSIDE}', 80), timeout=1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Tests never touch the network" in done.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_this_machine_is_reached(host):
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection((host, server.getsockname()[1]), timeout=10) as client,
    ):
        client.sendall(b"here")
        with server.accept()[0] as accepted:
            assert accepted.recv(4) == b"here"


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="needs Unix sockets")
def test_unix_sockets_are_reached(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a path of a socket is short
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("socket")
        server.listen()
        client.connect("socket")
        client.sendall(b"here")
        with server.accept()[0] as accepted:
            assert accepted.recv(4) == b"here"
