// What every page has: refreshing, times, charts, actions, keys.
import { installActions } from "./actions.js";
import { installCharts } from "./charts.js";
import { installExpansions } from "./expansions.js";
import { installKeys } from "./keys.js";
import { installLogin } from "./login.js";
import { installPreferences } from "./preferences.js";
import { installRefresh } from "./refresh.js";
import { installSuggestions } from "./suggestions.js";
import { installTables } from "./tables.js";
import { installTimes } from "./times.js";

installPreferences();
installTimes();
installActions();
installTables();
installExpansions();
installKeys();
installLogin();
if (document.body.dataset.namespace) {
  installRefresh();
  installCharts();
  installSuggestions();
}
