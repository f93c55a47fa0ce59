// Programs with a fault planted that gives one visitor what was made for another: built from the sources with a few places changed. An oracle that lets one of them pass judges
// nothing.

import { builtTree, type BuiltTree, type Patch } from "./built-tree.ts";

export type LeakBug = { readonly name: string; readonly patches: readonly Patch[] };

const inquiry = "src/agent/accelerator/cached/inquiry.ts";
const quickRequest = "src/agent/accelerator/lane/quick-request.ts";
const httpCache = "src/core/http/http-cache.ts";
const httpPass = "src/core/http/http-pass.ts";
const httpVary = "src/core/http/http-vary.ts";
const httpRefresh = "src/core/http/http-refresh.ts";

export const leakBugs: readonly LeakBug[] = [
  {
    name: "a cookie of cookies.bypass does not bypass",
    patches: [{ file: httpPass, from: 'if (kind === "bypass") return "bypass_cookie";', to: "" }],
  },
  {
    name: "a rule with bypass does not bypass",
    patches: [{ file: httpPass, from: 'if (settings.bypass) return "bypass";', to: "" }],
  },
  {
    name: "cookies of cookies.vary tell no answers apart",
    patches: [
      {
        file: inquiry,
        from: "if (name === ruleChoiceName)",
        to: 'if (name === toldCookiesName) return "";\n    if (name === ruleChoiceName)',
      },
      {
        file: quickRequest,
        from: 'if (name === "cookie" || name === toldCookiesName)',
        to: 'if (name === toldCookiesName) return "";\n    if (name === "cookie")',
      },
    ],
  },
  {
    name: "Set-Cookie is stored and given to all",
    patches: [
      {
        file: httpCache,
        from: 'return setsForVisitor(fields, settings) ? "set-cookie" : undefined;',
        to: "return undefined;",
      },
      {
        file: "src/agent/accelerator/cached/stored-head.ts",
        from: "return withoutFields(passedFields(answer), cookie);",
        to: "return passedFields(answer).filter(() => cookie.size > 0);",
      },
    ],
  },
  {
    name: "private is not heard behind a semicolon",
    patches: [
      {
        file: "src/core/http/cache-control.ts",
        from: "return mangled.length === 0 ? directives : withProhibitions(directives, mangled.join());",
        to: "return mangled.length < 0 ? withProhibitions(directives, mangled.join()) : directives;",
      },
    ],
  },
  {
    name: "answers to Authorization are stored without permission",
    patches: [
      {
        file: httpCache,
        from: 'if (request.isAuthorized && !isForAuthorized(directives)) return "authorization";',
        to: "",
      },
    ],
  },
  {
    name: "a fetch for all tells the cookies of its visitor",
    patches: [
      {
        file: inquiry,
        from: "const dropped = cookies === undefined ? untold : untoldAndCookies;",
        to: "const dropped = cookies === undefined || untoldAndCookies.size > 0 ? untold : untoldAndCookies;",
      },
      {
        file: inquiry,
        from: 'if (cookies !== undefined && cookies !== "") told.push',
        to: 'if (cookies !== undefined && cookies === "-") told.push',
      },
    ],
  },
  {
    name: "a fetch for all tells fields that no key knows",
    patches: [
      {
        file: "src/agent/accelerator/origin/origin-request.ts",
        from: "new Set([...untold, ...unkeyed])",
        to: "new Set([...untold, ...[...unkeyed].slice(0, 0)])",
      },
    ],
  },
  {
    name: "Vary is not compared",
    patches: [
      {
        file: httpVary,
        from: "if (selecting(name) !== vary[name]) return false;",
        to: 'if ((name.startsWith(":") || name.startsWith("x-forwarded")) && selecting(name) !== vary[name]) return false;',
      },
    ],
  },
  {
    name: "what fields choose a rule is not kept with an entry",
    patches: [
      { file: inquiry, from: "return this.rule.choice;", to: 'return "";' },
      { file: quickRequest, from: "return this.#rule.choice;", to: 'return "";' },
      { file: "src/core/http/http-reuse.ts", from: 'choice === ""', to: 'choice !== "-"' },
    ],
  },
  {
    name: "a confirmation gives somebody with a cookie what was made for another",
    patches: [
      {
        file: "src/core/http/http-reuse.ts",
        from: "if (!selector.hasOwnCookies) return true;",
        to: "if (negativeS !== -1) return true;",
      },
    ],
  },
  {
    name: "whoever waited for another's fetch gets it, whatever it varies by",
    patches: [
      {
        file: "src/agent/accelerator/cached/fetched-answer.ts",
        from: "isVariantFor(stored.vary, inquiry.selecting) &&",
        to: "(isVariantFor(stored.vary, inquiry.selecting) || landing.kind === 'shared') &&",
      },
    ],
  },
  {
    name: "a part of the query that no rule leaves out is left out",
    patches: [
      {
        file: inquiry,
        from: "query: rule.normalizeQuery(target.rawQuery),",
        to: 'query: rule.normalizeQuery(target.rawQuery).replace(/utm_source=[^&]*/, ""),',
      },
    ],
  },
];

/** Met so seldom that a small run may miss them, and mostly does: they are tried, and nothing is claimed of them. */
export const elusiveLeakBugs: readonly LeakBug[] = [
  {
    name: "what a 304 says to one visitor is kept for all",
    patches: [
      {
        file: httpRefresh,
        from: "const isKept = planStore(request, response, settings).store;",
        to: "const isKept = planStore(request, response, settings).store || request.noStore;",
      },
    ],
  },
  {
    name: "no-store and private of a 304 are not heard",
    patches: [
      {
        file: httpRefresh,
        from: 'if (!plan.store) return { kind: isOfVisitor(stored, request) ? "own" : "drop" };',
        to: "if (!plan.store) return { kind: isOfVisitor(stored, request) ? 'own' : 'refresh', headers, initialAgeS: 0, freshForS: 600, isKept: true };",
      },
    ],
  },
  {
    name: "heads of one length on a connection are taken for the same head",
    patches: [
      {
        file: "src/agent/accelerator/lane/head-scanner.ts",
        from: "if (known.bytes.compare(bytes, fieldsAt, end) !== 0) return undefined;",
        to: "if (known.bytes.subarray(-4).compare(bytes, end - 4, end) !== 0) return undefined;",
      },
    ],
  },
];

export function plantLeak({ patches }: LeakBug): BuiltTree {
  return builtTree(patches);
}
