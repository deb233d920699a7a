// What is remembered here: the theme, and the time range of all charts, which an address may name as ?range=.
const RANGES = ["900", "3600", "21600", "86400", "604800", "1209600"];

export const rangeSeconds = () => {
  const asked = new URLSearchParams(location.search).get("range") ?? localStorage.getItem("ms.range");
  return RANGES.includes(asked) ? asked : "3600";
};

const installRange = () => {
  const select = document.querySelector("[data-range]");
  if (!select) return;
  select.value = rangeSeconds();
  select.addEventListener("change", () => {
    localStorage.setItem("ms.range", select.value);
    const url = new URL(location.href);
    url.searchParams.set("range", select.value);
    history.replaceState(null, "", url);
    document.dispatchEvent(new Event("ms:preferences"));
  });
};

const installTheme = () => {
  document.querySelector("[data-theme-button]")?.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    localStorage.setItem("ms.theme", root.dataset.theme);
    document.dispatchEvent(new Event("ms:preferences"));
  });
};

const installMenu = () => {
  const button = document.querySelector("[data-menu]");
  button?.addEventListener("click", () => {
    const open = button.closest(".side").classList.toggle("open");
    button.setAttribute("aria-expanded", String(open));
  });
};

export const installPreferences = () => {
  installRange();
  installTheme();
  installMenu();
};
