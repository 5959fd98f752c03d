"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // The theme: the system's until the reader chooses.
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const showTheme = () => { theme.textContent = isDark() ? "Light theme" : "Dark theme"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  system.addEventListener("change", showTheme);
  showTheme();

  // What a mark stands for, beside the pointer.
  const tip = document.getElementById("tip");
  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 8);
    const above = event.clientY - box.height - 12;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${above > 8 ? above : event.clientY + 18}px`;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // A click on the head of a column sorts by it: numbers from the largest, words from A.
  const said = document.getElementById("said");
  const collator = new Intl.Collator(undefined, { numeric: true });
  const keyOf = (cell) => {
    const exact = cell.querySelector("data");
    return exact ? Number(exact.value) : cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return 0;
    return collator.compare(a, b);
  };
  const sort = (head) => {
    const heads = [...head.parentElement.children];
    const place = heads.indexOf(head);
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [keyOf(row.cells[place]), row]);
    const isNumeric = rows.some(([key]) => typeof key === "number");
    const before = head.getAttribute("aria-sort");
    const first = isNumeric ? "descending" : "ascending";
    const other = isNumeric ? "ascending" : "descending";
    const order = before === first ? other : first;
    const sign = order === "ascending" ? 1 : -1;
    const lacks = ([key]) => isNumeric && typeof key !== "number";
    rows.sort((a, b) => lacks(a) - lacks(b) || sign * compare(a[0], b[0]));
    body.append(...rows.map(([, row]) => row));
    heads.forEach((one) => { if (one.hasAttribute("aria-sort")) one.setAttribute("aria-sort", "none"); });
    head.setAttribute("aria-sort", order);
    said.textContent = `Sorted by ${head.textContent.trim()}, ${order}.`;
  };

  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button && button.classList.contains("sort")) sort(button.closest("th"));
    if (button && button.classList.contains("more")) {
      const table = document.getElementById(button.getAttribute("aria-controls"));
      const all = table.classList.toggle("all");
      button.setAttribute("aria-expanded", String(all));
      button.textContent = all ? "Show the first rows only" : `Show all ${table.tBodies[0].rows.length} rows`;
    }
  });

  // Only what scrolls is a stop of the Tab key.
  const boxes = [...document.querySelectorAll(".scroll")];
  const stops = () => boxes.forEach((box) => {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
  addEventListener("resize", stops);
  document.addEventListener("toggle", stops, true);
  stops();
})();
