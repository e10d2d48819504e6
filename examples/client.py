#!/usr/bin/env python3
"""Classifies texts: URL and TOKEN in the environment, texts as arguments."""
import json, os, sys, urllib.request

body = {"taxonomy": "TARIC", "items": [{"languageAttributes": {"de": {"productName": text}}} for text in sys.argv[1:]]}
request = urllib.request.Request(
    os.environ["URL"] + "/api/vat-classification/v1/classifications",
    json.dumps(body).encode(),
    {"Authorization": "Bearer " + os.environ["TOKEN"], "Content-Type": "application/json"})
for text, item in zip(sys.argv[1:], json.load(urllib.request.urlopen(request))["items"]):
    print(text, item["decision"]["assignmentStatus"], item["decision"].get("productClass", "-"), sep="\t")
