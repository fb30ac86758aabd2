// Theme switch and copy buttons. The choice lives in a cookie, so the server renders the right
// theme from the first byte; without this file pages follow the system and text is selected by hand.
"use strict";

document.documentElement.classList.add("has-script");

function darkNow() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function nameTheme(button) {
  button.setAttribute("aria-label", darkNow() ? "Use the light theme" : "Use the dark theme");
}

for (const button of document.querySelectorAll(".theme-toggle")) {
  nameTheme(button);
  button.addEventListener("click", () => {
    const theme = darkNow() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
    nameTheme(button);
    document.dispatchEvent(new Event("themechange"));
  });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText(source.dataset.text || source.textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});
