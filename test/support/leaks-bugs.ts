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
const httpReuse = "src/core/http/http-reuse.ts";
const requestCookies = "src/core/http/request-cookies.ts";
const queryRule = "src/core/serving/query-rule.ts";
const presets = "src/core/serving/cache-presets.ts";
const fetchedAnswer = "src/agent/accelerator/cached/fetched-answer.ts";

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
      { file: httpReuse, from: 'choice === ""', to: 'choice !== "-"' },
    ],
  },
  {
    name: "a confirmation gives somebody with a cookie what was made for another",
    patches: [
      {
        file: httpReuse,
        from: "if (!selector.hasOwnCookies) return true;",
        to: "if (negativeS !== -1) return true;",
      },
    ],
  },
  {
    name: "whoever waited for another's fetch gets it, whatever it varies by",
    patches: [
      {
        file: fetchedAnswer,
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
        from: /if \(!plan\.store \|\| forbidsSharing\(answer\.fields\)\)\s+return \{[^}]*\};/,
        to: "if (!plan.store || forbidsSharing(answer.fields)) return { kind: isOfVisitor(stored, request) ? 'own' : 'refresh', headers, initialAgeS: 0, freshForS: 600, isKept: true };",
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
  {
    name: "cookies.ignore is asked before cookies.bypass",
    patches: [
      {
        file: requestCookies,
        from: '[...rowsOf("bypass", bypass), ...rowsOf("vary", vary), ...rowsOf("ignored", ignore)]',
        to: '[...rowsOf("ignored", ignore), ...rowsOf("bypass", bypass), ...rowsOf("vary", vary)]',
      },
    ],
  },
  {
    name: "cookies.ignore is asked before cookies.vary",
    patches: [
      {
        file: requestCookies,
        from: '...rowsOf("vary", vary), ...rowsOf("ignored", ignore)]',
        to: '...rowsOf("ignored", ignore), ...rowsOf("vary", vary)]',
      },
    ],
  },
  {
    name: "an answer that sets a cookie of cookies.vary is stored",
    patches: [
      {
        file: httpCache,
        from: "return !settings.ignore_set_cookie || setsVaryCookie(fields, settings.cookies);",
        to: "return !settings.ignore_set_cookie;",
      },
    ],
  },
  {
    name: "proxy-revalidate allows for credentials what must-revalidate allows",
    patches: [
      {
        file: httpCache,
        from: 'return ["public", "must-revalidate", "s-maxage"].some(',
        to: 'return ["public", "must-revalidate", "proxy-revalidate", "s-maxage"].some(',
      },
    ],
  },
  {
    name: "what is stored answers credentials, whatever it says of them",
    patches: [
      {
        file: httpReuse,
        from: "(!isAuthorized || mayServeAuthorized(entry.headers)),",
        to: "(!isAuthorized || mayServeAuthorized(entry.headers) || entry.status > 0),",
      },
    ],
  },
  {
    name: "only the first line of Vary is heard",
    patches: [
      {
        file: httpVary,
        from: 'listMembers((fieldValue(fields, "vary") ?? "").toLowerCase())',
        to: 'listMembers((fields.find(([name]) => name.toLowerCase() === "vary")?.[1] ?? "").toLowerCase())',
      },
    ],
  },
  {
    name: "of Accept-Language only the first language counts",
    patches: [
      {
        file: httpVary,
        from: "return listMembers(value.toLowerCase())",
        to: "return listMembers(value.toLowerCase()).slice(0, 1)",
      },
    ],
  },
  {
    name: "vary of a rule is not heard",
    patches: [
      {
        file: httpVary,
        from: "return vary.map((name) => name.toLowerCase());",
        to: "return vary.slice(0, 0).map((name) => name.toLowerCase());",
      },
    ],
  },
  {
    name: "a 304 confirms what varies by other fields than it says",
    patches: [{ file: httpRefresh, from: " || !isSameVary(stored, answer))", to: ")" }],
  },
  {
    name: "what a 304 says that sets a cookie is kept for all",
    patches: [
      {
        file: httpRefresh,
        from: 'if (setsForVisitor(answer.fields, settings)) return { kind: "own" };',
        to: "",
      },
    ],
  },
  {
    name: "private of a 304 is not heard where what is stored has a field for shared caches",
    patches: [{ file: httpRefresh, from: " || forbidsSharing(answer.fields))", to: ")" }],
  },
  {
    name: "presets leave a parameter out that no campaign adds",
    patches: [{ file: presets, from: '"mc_cid", "mc_eid",', to: '"mc_cid", "mc_eid", "page",' }],
  },
  {
    name: "a preset passes nothing on for a parameter that acts",
    patches: [{ file: presets, from: '"add-to-cart", ', to: "" }],
  },
  {
    name: "a fetch is joined by whoever asks for the same path",
    patches: [
      {
        file: "src/agent/accelerator/cached/flights.ts",
        from: "return `${host} ${path} ${query}`;",
        to: "return `${host} ${path} ${query.slice(0, 0)}`;",
      },
    ],
  },
  {
    name: "a fetch is joined whatever cookies the rule varies by",
    patches: [
      {
        file: "src/agent/accelerator/cached/flights.ts",
        from: "told.some((name) => plan.selecting(name) !== selecting(name))",
        to: "told.some((name) => name !== toldCookiesName && plan.selecting(name) !== selecting(name))",
      },
      {
        file: fetchedAnswer,
        from: "isVariantFor(stored.vary, inquiry.selecting) &&",
        to: 'isVariantFor(stored.vary, (name) => (name === ":cookies" ? (stored.vary?.[name] ?? "") : inquiry.selecting(name))) &&',
      },
    ],
  },
  {
    name: "query.sort changes the order of the values of one name",
    patches: [
      {
        file: queryRule,
        from: "(a.place < b.place ? -1 : a.place > b.place ? 1 : 0)",
        to: "(a.piece < b.piece ? -1 : a.piece > b.piece ? 1 : 0)",
      },
    ],
  },
  {
    name: "a piece of a query with a semicolon is left out",
    patches: [
      { file: queryRule, from: 'piece.includes(";") || isNamed(piece)', to: "isNamed(piece)" },
    ],
  },
  {
    name: "what negative_ttl_s keeps answers visitors with cookies",
    patches: [
      {
        file: httpReuse,
        from: "const lifetimeS = negativeS === null ? stored.freshForS : lifetimeByOrigin(stored);",
        to: "const lifetimeS = negativeS === -1 ? lifetimeByOrigin(stored) : stored.freshForS;",
      },
    ],
  },
  {
    name: "a paused cache answers",
    patches: [{ file: httpPass, from: 'if (isPaused) return "paused";', to: "" }],
  },
  {
    name: "what HEAD is told for one visitor is kept for all",
    patches: [
      {
        file: fetchedAnswer,
        from: 'if (plan.kind === "other" || plan.isKept) await',
        to: "await",
      },
    ],
  },
  {
    name: "a part is stored",
    patches: [{ file: httpCache, from: "new Set([206, 304, 416])", to: "new Set([304, 416])" }],
  },
  {
    name: "the refusal of a part is stored",
    patches: [
      {
        file: httpCache,
        from: 'if (request.isRanged && status >= 400) return no("range");',
        to: "",
      },
    ],
  },
  {
    name: "ttl_s by media type makes public what was made for a cookie",
    patches: [
      {
        file: httpCache,
        from: "if (ttlS !== null) return false;",
        to: "if (ttlS === -1) return false;",
      },
      {
        file: httpReuse,
        from: "if (ttlS !== null) return false;",
        to: "if (ttlS === -1) return false;",
      },
    ],
  },
  {
    name: "override of no-cache overrides private too",
    patches: [
      {
        file: httpCache,
        from: 'if (directives.has("private")) return "private";',
        to: 'if (directives.has("private") && !settings.override.includes("no-cache")) return "private";',
      },
    ],
  },
];

export function plantLeak({ patches }: LeakBug): BuiltTree {
  return builtTree(patches);
}
