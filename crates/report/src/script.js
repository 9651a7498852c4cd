// Two comforts; without this script the page is whole and marks show their titles.
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const themes = ["auto", "light", "dark"];
  const keep = { get: () => { try { return localStorage.getItem("forebay-theme"); } catch { return null; } },
                 set: (theme) => { try { localStorage.setItem("forebay-theme", theme); } catch { /* private mode */ } } };
  let theme = themes.includes(keep.get()) ? keep.get() : "auto";
  const wear = () => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    keep.set(theme);
    wear();
  });
  button.hidden = false;
  wear();

  const bubble = document.getElementById("tooltip");
  const hide = () => { bubble.hidden = true; };
  const show = (mark, x, y) => {
    bubble.textContent = mark.getAttribute("aria-label");
    bubble.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = bubble, wide = root.clientWidth;
    bubble.style.left = Math.max(4, Math.min(x - width / 2, wide - width - 4)) + scrollX + "px";
    bubble.style.top = (y - height - 12 < 0 ? y + 18 : y - height - 12) + scrollY + "px";
  };
  for (const mark of document.querySelectorAll(".tip")) {
    // The browser's own bubble would come on top of this one.
    mark.querySelector("title")?.remove();
    mark.addEventListener("pointermove", (event) => show(mark, event.clientX, event.clientY));
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", () => {
      const box = mark.getBoundingClientRect();
      show(mark, box.x + box.width / 2, box.y);
    });
    mark.addEventListener("blur", hide);
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
})();
