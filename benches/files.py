#!/usr/bin/env python3
"""Memory of the service while a large file comes in and a large one goes out.

    benches/files.py --pid PID [--megabytes 500] [--rows 1000000] [--dry-run]

URL and TOKEN in the environment, and the process id of the service on this machine. Makes the rows while it sends them:
one CSV file of about that many megabytes in that many rows. Tells rows, seconds, and the greatest resident memory of the
service while idle, during the import, and during the export of all that the account has then. Only Python's own library
is needed; the system is Linux."""
import argparse, http.client, json, os, threading, time, urllib.parse

BASE = "/api/vat-classification/v1"
GOODS = """Herren T-Shirt Baumwolle|Ganze Kaffeebohnen, geröstet|Speisesalz jodiert|Spaghetti aus Hartweizengrieß|LED-Lampe E27
Haftnotizen|Stichsäge 650 W|Grüner Tee|Babybody Langarm|Kugelschreiber blau|Regenschirm faltbar|Laufschuhe Herren""".replace("\n", "|").split("|")
CHUNK_ROWS = 1_000
PAUSE_S = 0.1


def resident_mib(pid):
    """Resident memory of a process, without what it shares with files: its own."""
    with open(f"/proc/{pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    kib = lambda name: int(fields[name].split()[0])
    return kib("RssAnon") / 1024, kib("VmRSS") / 1024


class Watch:
    """The greatest memory of a process while something runs."""

    def __init__(self, pid):
        self.pid, self.most, self.stopped = pid, (0.0, 0.0), threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        self.began = time.monotonic()
        return self

    def look(self):
        while not self.stopped.wait(PAUSE_S):
            self.most = tuple(map(max, self.most, resident_mib(self.pid)))

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.began
        self.stopped.set()
        self.thread.join()

    def told(self):
        return f"{self.seconds:,.0f} s, at most {self.most[0]:,.0f} MiB of its own, {self.most[1]:,.0f} MiB resident"


def chunks(megabytes, rows):
    """The file, part by part."""
    yield "productId;productName;description\n".encode()
    wanted = megabytes * 1_000_000 // rows
    for first in range(0, rows, CHUNK_ROWS):
        lines = []
        for row in range(first, min(first + CHUNK_ROWS, rows)):
            head = f"row-{row};{GOODS[row % len(GOODS)]} {row};"
            words = f"Artikel {row} aus dem Lager, in neuer Verpackung, sofort lieferbar. "
            room = max(0, wanted - len(head.encode()) - 1)
            lines.append(head + (words * (room // len(words) + 1))[:room])
        yield ("\n".join(lines) + "\n").encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pid", type=int, required=True)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--export-only", action="store_true")
    asked = parser.parse_args()
    host = urllib.parse.urlsplit(os.environ.get("URL", "http://127.0.0.1:8080")).netloc
    headers = {"Authorization": "Bearer " + os.environ["TOKEN"]}

    print("before:", "{:,.0f} MiB of its own, {:,.0f} MiB resident".format(*resident_mib(asked.pid)), flush=True)
    if not asked.export_only:
        query = urllib.parse.urlencode({"dryRun": str(asked.dry_run).lower(), "language": "de"})
        with Watch(asked.pid) as watch:
            connection = http.client.HTTPConnection(host)
            connection.request("POST", f"{BASE}/imports?{query}", chunks(asked.megabytes, asked.rows),
                               {**headers, "Content-Type": "text/csv", "Accept": "application/x-ndjson"}, encode_chunked=True)
            answer, last, told = connection.getresponse(), b"{}", 0.0
            print(f"sent after {time.monotonic() - watch.began:,.0f} s, answer {answer.status}", flush=True)
            for line in answer:
                last = line if line.strip() else last
                if time.monotonic() - told > 30:
                    told = time.monotonic()
                    print("  ", line.decode().strip()[:160], f"{resident_mib(asked.pid)[0]:,.0f} MiB", flush=True)
        summary = json.loads(last)
        print(f"import of {asked.megabytes} MB in {asked.rows:,} rows{', dry run' if asked.dry_run else ''}: {watch.told()}")
        print("  ", {name: summary.get(name) for name in ("state", "created", "updated", "unchanged", "refused", "code", "message")}, flush=True)

    rows = length = 0
    with Watch(asked.pid) as watch:
        connection = http.client.HTTPConnection(host)
        connection.request("GET", f"{BASE}/exports", headers=headers)
        answer = connection.getresponse()
        while part := answer.read(1 << 20):
            rows, length = rows + part.count(b"\n"), length + len(part)
    print(f"export of {length / 1e6:,.0f} MB in {rows - 1:,} rows, answer {answer.status}: {watch.told()}")


if __name__ == "__main__":
    main()
