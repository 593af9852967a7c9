"""Python programs in processes that have imported torch already: its import takes longer than what most tests do.

  fork_server.py serve SOCKET             imports torch, then forks a process for each program that it is asked for
  fork_server.py run SOCKET FILE WORDS…   FILE runs in such a process with this one's streams, variables and folder

`run` ends as the program does, by a signal too, and the program ends when `run` is killed: who waits for `run`, or
kills it, sees no difference to `python3 FILE WORDS…`. `run` imports neither numpy nor torch.
"""
import array
import contextlib
import json
import os
import select
import signal
import socket
import sys


def run(path, *words):
    """Hands the program over, and ends as it does."""
    request = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.connect(path)
        streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        server.sendmsg([len(request).to_bytes(4, "little")], streams)
        server.sendall(request)
        status = json.loads(server.recv(64) or "1")
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def received(connection):
    """(streams, words, folder, variables) of a program."""
    head, ancillary, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(12))
    length, request = int.from_bytes(head, "little"), b""
    while len(request) < length:
        request += connection.recv(length - len(request))
    return list(array.array("i", ancillary[0][2])), *json.loads(request)


def become(streams, words, folder, variables):
    """In the new process: it is the program from here on. Its code."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    with open(words[0], encoding="utf-8") as file:
        return compile(file.read(), words[0], "exec")


class Server:
    def __init__(self, path):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(path)
        self.listener.listen(64)
        self.woken, self.wake = socket.socketpair()  # by the end of a process
        self.woken.setblocking(False)
        self.wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.wake.fileno())
        self.running = {}  # process → the connection by which it was asked for

    def next_program(self):
        """The code of a program, in the process that was forked for it. In the server it never returns."""
        while True:
            ready, _, _ = select.select([0, self.listener, self.woken, *self.running.values()], [], [])
            if 0 in ready:  # it is closed: nobody is there who could ask
                self.end()
            if self.woken in ready:
                self.woken.recv(4096)
            self.collect(ready)
            if self.listener in ready:
                connection, _ = self.listener.accept()
                program = received(connection)
                if (process := os.fork()) == 0:
                    self.forget(connection)
                    return become(*program)
                self.running[process] = connection
                for stream in program[0]:
                    os.close(stream)

    def collect(self, ready):
        """Tells how processes have ended, and ends those that nobody waits for any more."""
        for process, connection in list(self.running.items()):
            if connection in ready:
                os.kill(process, signal.SIGKILL)
            ended, status = os.waitpid(process, 0 if connection in ready else os.WNOHANG)
            if ended:
                with self.running.pop(process), contextlib.suppress(OSError):  # killed in this very moment
                    connection.sendall(json.dumps(os.waitstatus_to_exitcode(status)).encode())

    def forget(self, connection):
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (self.listener, self.woken, self.wake, connection, *self.running.values()):
            one.close()

    def end(self):
        for process in self.running:
            os.kill(process, signal.SIGKILL)
        sys.exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(*sys.argv[2:])
    import torch  # noqa: F401  # pylint: disable=unused-import

    server = Server(sys.argv[2])
    print("serving", flush=True)
    exec(server.next_program(), {"__name__": "__main__", "__builtins__": __builtins__})
