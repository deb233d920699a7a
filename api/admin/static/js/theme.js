// Before anything is drawn: the theme that was chosen here. Without a choice, the system's.
(() => {
  const theme = localStorage.getItem("ms.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
