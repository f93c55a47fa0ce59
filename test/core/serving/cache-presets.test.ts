// Presets: what each makes of requests and answers, and that its rules are rules like others.

import { describe, expect, test } from "vitest";
import { passReason } from "../../../src/core/http/http-pass.ts";
import { plainRequest, planStore } from "../../../src/core/http/http-cache.ts";
import type { Field } from "../../../src/core/http/http-fields.ts";
import { presetRules, type PresetInput } from "../../../src/core/serving/cache-presets.ts";
import { effectiveDevlove, type SiteInput } from "../../../src/core/serving/effective-devlove.ts";
import { compileSite } from "../../../src/core/serving/site-routes.ts";
import { validateDevlove } from "../../../src/wire/devlove-validate.ts";
import { ruleMet } from "../../support/rule-met.ts";

const routesOf = (cache: NonNullable<SiteInput["cache"]>) =>
  compileSite(effectiveDevlove({ domains: { "a.example": { cache } } }, "a.example", null));

/** "shared for N" by the rule, "shared" where the origin says how long, or why the request is passed on. */
function fateIn(routes: ReturnType<typeof routesOf>, url: string, cookie?: string): string {
  const [path = "", query = ""] = url.split("?", 2);
  const fields: readonly Field[] = cookie === undefined ? [] : [["Cookie", cookie]];
  const rule = ruleMet(routes, path, { query, fields });
  const request = { method: "GET", fields, hasBody: false, hasLoneMark: false };
  const passed = passReason(request, rule);
  const { ttl_s: ttlS } = rule.settings;
  return passed ?? (ttlS === null ? "shared" : `shared for ${ttlS}`);
}

const visitor = "_ga=GA1.2.3; cookieyes-consent=yes; some_marketing_thing=1";
const hash = "0123456789abcdef0123456789abcdef";

type Row = readonly [url: string, cookie: string | undefined, fate: string];

const wordPress: readonly Row[] = [
  ["/", undefined, "shared for 300"],
  ["/2026/11/post/", visitor, "shared for 300"],
  ["/post/", `${visitor}; wordpress_test_cookie=WP+Cookie+check`, "shared for 300"],
  ["/post/", `${visitor}; wordpress_logged_in_${hash}=admin%7C1`, "bypass_cookie"],
  ["/post/", `wordpress_sec_${hash}=a`, "bypass_cookie"],
  ["/post/", `wp-postpass_${hash}=a`, "bypass_cookie"],
  ["/post/", `comment_author_${hash}=Ann`, "bypass_cookie"],
  ["/post/", `comment_author_email_${hash}=ann%40a.example`, "bypass_cookie"],
  ["/post/", "wordpress_no_cache=1", "bypass_cookie"],
  ["/post/", "PHPSESSID=a", "bypass_cookie"],
  ["/?p=7&preview=true", undefined, "bypass"],
  ["/?p=7&Preview=true", undefined, "bypass"],
  ["/post/?unapproved=3&moderation-hash=a", undefined, "bypass"],
  ["/?customize_changeset_uuid=a", undefined, "bypass"],
  ["/?rest_route=/wp/v2/users/me", undefined, "bypass"],
  ["/wp-admin", undefined, "bypass"],
  ["/wp-admin/admin-ajax.php?action=x", undefined, "bypass"],
  ["/site2/wp-admin/", undefined, "bypass"],
  ["/wp-login.php", undefined, "bypass"],
  ["/wp-login.php/x", undefined, "bypass"],
  ["/wp-cron.php?doing_wp_cron=1", undefined, "bypass"],
  ["/xmlrpc.php", undefined, "bypass"],
  ["/wp-json/wp/v2/posts", undefined, "bypass"],
  ["/wp-content/plugins/x/ajax.php", undefined, "bypass"],
  ["/wp-includes/js/tinymce/wp-tinymce.php/x", undefined, "bypass"],
  ["/wp-includes/ms-files.php?file=a", undefined, "bypass"],
  ["/wp-content/themes/x/style.css?ver=6", `wordpress_logged_in_${hash}=a`, "shared for 86400"],
  ["/wp-includes/js/jquery.js", visitor, "shared for 86400"],
  ["/cart/", visitor, "shared for 300"],
];

const wooCommerce: readonly Row[] = [
  ...wordPress.filter(([url]) => url !== "/cart/"),
  ["/product/shoe/", visitor, "shared for 300"],
  ["/product/shoe/", `${visitor}; woocommerce_recently_viewed=7; store_notice3=hidden`, "shared for 300"],
  ["/product/shoe/", "woocommerce_items_in_cart=1", "bypass_cookie"],
  ["/product/shoe/", `${visitor}; woocommerce_cart_hash=a`, "bypass_cookie"],
  ["/product/shoe/", `wp_woocommerce_session_${hash}=a`, "bypass_cookie"],
  ["/product/shoe/?add-to-cart=7", undefined, "bypass"],
  ["/shop/?remove_item=a", undefined, "bypass"],
  ["/?wc-ajax=get_refreshed_fragments", undefined, "bypass"],
  ["/cart", undefined, "bypass"],
  ["/cart/", visitor, "bypass"],
  ["/checkout/order-pay/7/", undefined, "bypass"],
  ["/my-account/orders/", undefined, "bypass"],
  ["/my-account%2forders", undefined, "bypass"],
  ["/wp-json/wc/store/v1/cart", undefined, "bypass"],
  ["/wp-content/uploads/woocommerce_uploads/book.pdf", undefined, "bypass"],
  ["/cartoons/", undefined, "shared for 300"],
]; // prettier-ignore

const drupal: readonly Row[] = [
  ["/", visitor, "shared"],
  ["/node/7", "has_js=1; other=2", "shared"],
  ["/node/7", `SESS${hash}=a`, "bypass_cookie"],
  ["/node/7", `${visitor}; SSESS${hash}=a`, "bypass_cookie"],
  ["/node/7", "NO_CACHE=1", "bypass_cookie"],
  ["/user", undefined, "bypass"],
  ["/user/login", undefined, "bypass"],
  ["/de/user/login", undefined, "bypass"],
  ["/admin/content", undefined, "bypass"],
  ["/update.php/selection", undefined, "bypass"],
  ["/core/install.php", undefined, "bypass"],
  ["/system/files/private.pdf", undefined, "bypass"],
  ["/core/misc/drupal.js", visitor, "shared for 86400"],
  ["/sites/default/files/a.png", `SESS${hash}=a`, "shared for 86400"],
  ["/users-guide", visitor, "shared"],
];

describe.each([
  ["wordpress", wordPress],
  ["woocommerce", wooCommerce],
  ["drupal", drupal],
] as const)("%s", (name, rows) => {
  const routes = routesOf({ presets: [{ name }] });
  test.each(rows)("%s with %s: %s", (url, cookie, fate) => {
    expect(fateIn(routes, url, cookie)).toBe(fate);
  });

  test("what the application marks, or gives a cookie with, is not stored", () => {
    const { settings } = ruleMet(routes, "/post/");
    const stored = (fields: readonly Field[]) => {
      const response = { status: 200, fields, requestedAtMs: 0, receivedAtMs: 0 };
      return planStore(plainRequest, response, settings).store;
    };
    const said = (value: string): Field => ["Cache-Control", value];
    expect(stored([said("max-age=60")])).toBe(true);
    expect(stored([])).toBe(name !== "drupal");
    expect(stored([said("max-age=60"), ["Set-Cookie", "a=b"]])).toBe(false);
    expect(stored([said("no-cache, must-revalidate, max-age=0, private")])).toBe(false);
    expect(stored([said("no-store")])).toBe(false);
  });

  test("its rules are valid as a document, each below a base as well", () => {
    for (const base of ["", "/blog"]) {
      const rules = presetRules({ name, base });
      const content = JSON.stringify({ domains: { "a.example": { cache: { rules } } } });
      const verdict = validateDevlove("devlove/1", content, { mainDomain: null, subDomains: [] });
      expect(verdict).toMatchObject({ ok: true });
      expect(rules.every(({ path }) => path === base || path.startsWith(`${base}/`))).toBe(true);
    }
  });
});

describe("a preset as a document has it", () => {
  test("in another language, beside plugins, with another lifetime", () => {
    const preset: PresetInput = {
      name: "woocommerce",
      ttl_s: 60,
      pages: { cart: ["/warenkorb/", "/en/cart"], checkout: ["/kasse"] },
      cookies: { bypass: ["edd_items_in_cart"], vary: ["wmc_current_currency"] },
    };
    const routes = routesOf({ presets: [preset] });
    const rows: readonly Row[] = [
      ["/warenkorb", undefined, "bypass"],
      ["/warenkorb/", undefined, "bypass"],
      ["/en/cart/x", undefined, "bypass"],
      ["/kasse/", undefined, "bypass"],
      ["/my-account/", undefined, "bypass"],
      ["/cart/", undefined, "shared for 60"],
      ["/", "edd_items_in_cart=1", "bypass_cookie"],
      ["/", `${visitor}; wmc_current_currency=EUR`, "shared for 60"],
    ];
    for (const [url, cookie, fate] of rows) expect([url, fateIn(routes, url, cookie)]).toEqual([url, fate]);
    const { cookies } = ruleMet(routes, "/");
    expect(cookies([["Cookie", `${visitor}; wmc_current_currency=EUR`]])).toEqual({
      kind: "vary",
      told: "wmc_current_currency=EUR",
    });
  }); // prettier-ignore

  test("below a base, and the rules of the document come first", () => {
    const routes = routesOf({
      rules: [{ path: "/blog/live/**", bypass: true }],
      presets: [{ name: "wordpress", base: "/blog" }, { name: "drupal" }],
      default: { ttl_s: 7 },
    });
    expect(fateIn(routes, "/blog")).toBe("shared for 300");
    expect(fateIn(routes, "/blog/post", visitor)).toBe("shared for 300");
    expect(fateIn(routes, "/blog/live/1")).toBe("bypass");
    expect(fateIn(routes, "/blog/wp-login.php")).toBe("bypass");
    expect(fateIn(routes, "/node/1", visitor)).toBe("shared");
  });

  test("links of campaigns share the page", () => {
    const rule = ruleMet(routesOf({ presets: [{ name: "wordpress" }] }), "/");
    expect(rule.normalizeQuery("utm_source=a&p=7&fbclid=b&gclid=c")).toBe("p=7");
  });
});
