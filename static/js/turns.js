// j and k go to the next and the previous turn, as the links at the top of the page do.
"use strict";

const KEYS = { j: "next", k: "prev" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const link = document.querySelector(`nav a[rel="${KEYS[event.key]}"]`);
  if (link) link.click();
});
