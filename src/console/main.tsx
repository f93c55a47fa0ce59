// The console: begins in the one element of the page.

import { render } from "preact";
import { App } from "./app.tsx";

const place = document.getElementById("app");
if (place === null) throw new TypeError("the page has no place for the console");
render(<App />, place);
