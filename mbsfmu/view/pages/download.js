// Data inside of the page, saved as files. Part of every page that has some.
(() => {
  "use strict";

  function save(text, name, type) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download =
      name
        .replace(/[^\p{L}\p{N}._-]+/gu, "-")
        .replace(/^[-.]+/, "")
        .slice(-100) || "data";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  for (const place of document.querySelectorAll(".download")) {
    place.querySelector("button").addEventListener("click", ({ currentTarget: { dataset } }) => {
      const data = JSON.parse(place.querySelector("script.data").textContent);
      save(typeof data === "string" ? data : `${JSON.stringify(data, null, 2)}\n`, dataset.name, dataset.kind);
    });
  }
  window.mbsfmuDownload = { save };
})();
