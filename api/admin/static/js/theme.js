// Before anything is drawn: the theme that was chosen here, without a choice the system's; and how wide times will be.
(() => {
  const theme = localStorage.getItem("ms.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  document.documentElement.dataset.times = localStorage.getItem("ms.times") ?? "relative";
})();
