// What the theme leaves out for those who read by keyboard or by ear: levels of captions, focus where something scrolls.

"use strict";

document.addEventListener("DOMContentLoaded", () => {
  for (const each of document.querySelectorAll(".caption[role=heading]")) each.setAttribute("aria-level", "2");
  const reach = () => {
    for (const each of document.querySelectorAll("pre, .table-wrapper")) {
      if (each.scrollWidth > each.clientWidth) each.tabIndex = 0;
    }
  };
  reach();
  addEventListener("resize", reach);
});
