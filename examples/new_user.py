#!/usr/bin/env python3
"""A first day with the service: 2,000 products from a CSV file, their classes in three taxonomies with reasons and
rates, approvals, corrections, a search, and everything deleted again. URL and TOKEN in the environment, of an account
that has no products; a file may be given. Only Python's own library is needed. Ends with the number of calls and the
seconds that they took."""
import collections, json, os, sys, time, urllib.error, urllib.parse, urllib.request

BASE = os.environ.get("URL", "http://127.0.0.1:8080") + "/api/vat-classification/v1"
TOKEN = os.environ["TOKEN"]
GOODS = """Herren T-Shirt Baumwolle|Ganze Kaffeebohnen, geröstet, 1 kg|Speisesalz jodiert 500 g|Spaghetti aus Hartweizengrieß 500 g
Herren-Jeans, Denim|LED-Lampe E27 9 W|Haftnotizen 76 x 76 mm|Stichsäge 650 W|Geräucherter Lachs in Scheiben 200 g|Grüner Tee 100 g
Mehrkornbrot geschnitten 750 g|Babybody Langarm, Bio-Baumwolle|Wasserkocher Edelstahl 1,7 l|Kugelschreiber blau|Regenschirm faltbar
Ledergürtel Herren|Damenpullover Wolle|Laufschuhe Herren|Kinderfahrrad 20 Zoll|Olivenöl extra nativ 750 ml""".replace("\n", "|").split("|")
VARIANTS = [f"{maker} {number}" for maker in ("Nord", "Süd", "Ost", "West") for number in range(1, 26)]
calls = 0


def call(method, path, query=(), body=None, kind="application/json"):
    """One request; the answer's JSON."""
    global calls
    calls += 1
    url = BASE + path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
    data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": "Bearer " + TOKEN, "Content-Type": kind}, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        sys.exit(f"{method} {path}: {error.code} {error.read().decode()}")


def a_file():
    """2,000 lines as a shop would export them."""
    lines = ["Artikelnummer;Bezeichnung;Hersteller"]
    pairs = [(good, variant) for good in GOODS for variant in VARIANTS]
    lines += [f"art-{at};{good}, {variant};{variant.split()[0]}" for at, (good, variant) in enumerate(pairs)]
    return "\n".join(lines).encode()


def main():
    began = time.monotonic()
    file = open(sys.argv[1], "rb").read() if len(sys.argv) > 1 else a_file()
    done = call("POST", "/imports", {"language": "de"}, file, "text/csv")
    print(f"imported: {done['created']} new, {done['updated']} changed, {done['refused']} refused; columns left: {done['leftColumns']}")

    polls, pending, pause = 0, None, 0.5
    while pending != 0:
        earlier, polls = pending, polls + 1
        counts = call("GET", "/assignments/TARIC/counts", {"by": "autoAssignment"})["items"]
        if sum(item["count"] for item in counts) != done["created"] + done["updated"] + done["unchanged"]:
            sys.exit("this account has other products, too: what follows decides and deletes, so take an account of its own")
        pending = sum(item["count"] for item in counts if item["autoAssignment"] == "PENDING")
        if earlier:
            # Ask again when the rest should be done.
            pause = min(60, pending * pause / (earlier - pending) * 1.2 + 0.1) if earlier > pending else 2 * pause
        time.sleep(pause if pending else 0)

    products, statuses = {}, collections.Counter()
    for taxonomy in ("TARIC", "TARES", "UKGT"):
        query = {"assignmentStatus": "ALL", "embed": "CANDIDATES,VAT_RATES", "size": 200}
        while query:
            page = call("GET", f"/assignments/{taxonomy}", query)
            for item in page["items"]:
                statuses[taxonomy, item["assignmentStatus"]] += 1
                products.setdefault(item["productId"], {})[taxonomy] = item
            following = page["links"]["next"]
            query = following and urllib.parse.parse_qs(urllib.parse.urlparse(following).query)
    for (taxonomy, status), count in sorted(statuses.items()):
        print(f"{taxonomy} {status}: {count}")
    one = next(iter(products.values()))["TARIC"]
    why = ", ".join(reason.get("word", "?") for reason in one["candidates"][0]["evidence"][:3]) if one["candidates"] else "-"
    print(f"{one['productId']}: {one.get('productClass')} because of {why}; rates {one.get('vatRates')}")

    sure = {"assignmentStatus": "ASSIGNED", "confidenceFrom": 0.97}
    approved = call("POST", "/assignments/TARIC/actions", body={"action": "APPROVE", "filter": sure, "comment": "first day"})
    print(f"approving {approved['selected']} that are sure")

    unsure = [item for item in (product["TARIC"] for product in products.values()) if item["assignmentStatus"] == "UNASSIGNED"][:5]
    if unsure:
        item = lambda it: {"productId": it["productId"], "productClass": "851679-00-000", "assignmentVersion":
                           {"vatRules": it["subscribedPlatformServices"]["vatRules"]["assignmentVersion"]}}
        corrected = call("PATCH", "/assignments/TARIC", {"assignmentAction": "ASSIGN"},
                         {"products": [item(it) for it in unsure], "comment": "electric heaters of water", "onConflict": "SKIP"})
        print(f"corrected: {len(corrected['products'])}")

    found = call("POST", "/products/global/search",
                 body={"filterCriteria": [{"languageKey": "de", "productName": "kaffee -nord"}], "detail": "Small", "count": True, "size": 1})
    print(f"coffee that is not from Nord: {found['total']}")

    ids = list(products)
    for at in range(0, len(ids), 1000):
        some = [{"productId": product_id, "currentVersion": 1} for product_id in ids[at:at + 1000]]
        gone = call("POST", "/products/global/deletions", body={"products": some, "onConflict": "SKIP"})
        print(f"deleted: {sum(result['status'] == 200 or result['status'] == 204 for result in gone['results'])}")
    print(f"{calls} calls, {polls} of them to wait, {time.monotonic() - began:.1f} s")


main()
