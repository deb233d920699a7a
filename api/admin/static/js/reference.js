// The reference of the API: Swagger UI over this service's own document, with calls to this service in the page's namespace.
import { callApi, Problem } from "./api.js";

const place = document.getElementById("reference");
const dark = matchMedia("(prefers-color-scheme: dark)");

const followTheme = () => {
  const theme = document.documentElement.dataset.theme;
  document.documentElement.classList.toggle("dark-mode", theme ? theme === "dark" : dark.matches);
};

const show = async () => {
  const { told: spec } = await callApi("GET", "/openapi.json");
  spec.servers = [{ url: location.origin }];
  spec.info.description = ""; // a table of all errors, which stands before the operations
  window.SwaggerUIBundle({
    spec,
    domNode: place,
    deepLinking: true,
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    docExpansion: "none",
    filter: true,
    tryItOutEnabled: true,
    validatorUrl: null,
    requestInterceptor: (request) => {
      request.headers["millstream-namespace"] ??= document.body.dataset.namespace;
      return request;
    },
  });
};

followTheme();
dark.addEventListener("change", followTheme);
new MutationObserver(followTheme).observe(document.documentElement, { attributeFilter: ["data-theme"] });
show().catch((error) => {
  if (!(error instanceof Problem)) throw error;
  place.querySelector("p").textContent = error.message;
});
