"""Follow every internal link of a built site, anchors included; refuse what a page loads from elsewhere."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "source": "src", "iframe": "src"}
LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload"}  # kinds of <link> that a browser fetches


class Page(HTMLParser):
    """The links, the names that can be linked to, and what is loaded."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names, self.loaded = [], set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.names.update(found[key] for key in ("id", "name") if found.get(key))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        if tag in LOADED and found.get(LOADED[tag]):
            self.loaded.append(found[LOADED[tag]])
        if tag == "link" and found.get("href") and LOADED_LINKS & set((found.get("rel") or "").split()):
            self.loaded.append(found["href"])


def main(folder):
    root = Path(folder).resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.html"))}
    followed, faults = 0, []
    for path, page in pages.items():
        for address in [*page.links, *page.loaded]:
            parts = urlsplit(address)
            outside = bool(parts.scheme or parts.netloc)
            if outside and address in page.loaded and parts.scheme != "data":
                faults.append(f"{path.relative_to(root)} loads {address} from elsewhere")
            if outside:
                continue
            followed += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                faults.append(f"{path.relative_to(root)}: no file {address}")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].names:
                faults.append(f"{path.relative_to(root)}: no anchor {address}")
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(pages)} pages, {followed} internal links and files, {len(faults)} broken")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
