// Lists of cache rules for applications that many sites run (`cache.presets`). A preset is nothing but rules
// that could be written out: `devlove/validate` and docs/caching.md show them in full.
//
// Each list passes on what its application makes for one visitor: the cookies of a session, a login or a
// cart, the paths of its administration, the parameters that act. An application whose cookies are all named
// makes no page by any other, so all others are ignored; the fetch that others share tells none of them.
// Where a plugin does make pages by a cookie of its own, the document names it in `cookies` of the preset.
//
// Compared with WordPress (wp-includes/default-constants.php, wp-comments-post.php), WooCommerce
// (class-wc-form-handler.php, class-wc-cache-helper.php), Drupal (SessionConfiguration.php, NoSessionOpen.php, the routes of
// its modules user, node and system), and configurations of other caches for all three.
// Nothing is stored by these rules that the applications mark as private, because no rule lifts that.

import type { Static } from "typebox";
import type { CacheSchema, PresetSchema } from "./devlove-cache.ts";
import type { AsWritten } from "./devlove.ts";

export type PresetInput = AsWritten<Static<typeof PresetSchema>>;
type CacheRuleInput = NonNullable<AsWritten<Static<typeof CacheSchema>>["rules"]>[number];

/** Pages last so long where neither preset nor application says anything: WordPress names no lifetime. */
const pageTtlS = 300;
/** Files change their names, or their `ver`, when they change. */
const fileTtlS = 86_400;
/** Both hide a slow or failing application. No clear is undone: what is cleared is never stale. */
const stale = { stale_while_revalidate_s: 30, stale_if_error_s: 3_600 };

/** Parameters that campaigns add to links and scripts in the browser read. */
const campaigns = [
  "utm_*", "fbclid", "gclid", "gclsrc", "gbraid", "wbraid", "dclid", "msclkid", "srsltid", "twclid", "ttclid",
  "yclid", "mc_cid", "mc_eid",
]; // prettier-ignore

const ofWordPress = {
  // PHPSESSID is of plugins that open a session of PHP.
  cookies: [
    "wordpress_logged_in_*", "wordpress_sec_*", "wordpress_rec_*", "wordpress_no_cache", "wp-postpass_*",
    "wp-resetpass-*", "comment_author_*", "PHPSESSID",
  ], // prettier-ignore
  // `unapproved` shows somebody's comment before it is approved; `rest_route` is the REST API without a path.
  parameters: [
    "preview", "preview_id", "preview_nonce", "customize_*", "unapproved", "moderation-hash", "rest_route",
    "doing_wp_cron",
  ], // prettier-ignore
  paths: ["/**/wp-admin", "/**/wp-admin/**", "/**/wp-json", "/**/wp-json/**", "/**/xmlrpc.php"],
  scripts: [
    "/**/wp-*.php",
    "/**/wp-*.php/**",
    "/**/wp-content/**.php",
    "/**/wp-content/**.php/**",
    "/**/wp-includes/**.php",
    "/**/wp-includes/**.php/**",
  ],
  files: ["/**/wp-content/**", "/**/wp-includes/**"],
};

const ofWooCommerce = {
  cookies: ["woocommerce_items_in_cart", "woocommerce_cart_hash", "wp_woocommerce_session_*"],
  parameters: [
    "add-to-cart", "added-to-cart", "remove_item", "undo_item", "removed_item", "remove_coupon", "order_again", "cancel_order",
    "pay_for_order", "download_file", "wc-ajax", "wc-api",
  ], // prettier-ignore
  paths: ["/**/wc-api/**", "/**/wp-content/uploads/woocommerce_uploads/**"],
};
/** The paths that the installation gives these pages. */
const shopPages = { cart: ["/cart"], checkout: ["/checkout"], account: ["/my-account"] };

const ofDrupal = {
  cookies: ["SESS*", "SSESS*", "NO_CACHE", "PHPSESSID"],
  // Also below the prefix of a language.
  paths: [
    "/user", "/user/**", "/*/user", "/*/user/**", "/admin", "/admin/**", "/*/admin", "/*/admin/**",
    "/node/add/**", "/cron/**", "/batch", "/flag/**", "/system/files/**", "/system/temporary", "/**/ajax/**",
    "/**.php", "/**.php/**",
  ], // prettier-ignore
  files: [
    "/core/**", "/sites/*/files/**", "/modules/**.css", "/modules/**.js", "/themes/**.css", "/themes/**.js",
  ], // prettier-ignore
};

/** Returns the rules that a preset stands for, in order. */
export function presetRules(preset: PresetInput): readonly CacheRuleInput[] {
  const { base = "" } = preset;
  const rules = rulesOf(preset);
  const below = rules.map((rule) => ({ ...rule, path: `${base}${rule.path}` }));
  const last = rules.at(-1);
  // `/blog/**` is not `/blog`.
  return base === "" || last === undefined ? below : [...below, { ...last, path: base }];
}

function rulesOf(preset: PresetInput): readonly CacheRuleInput[] {
  switch (preset.name) {
    case "wordpress":
      return wordPressRules(preset, ofWordPress.parameters, [], ofWordPress.cookies);
    case "woocommerce": {
      const { cookies, parameters, paths } = ofWooCommerce;
      const { cart, checkout, account } = { ...shopPages, ...preset.pages };
      const pages = [...cart, ...checkout, ...account]
        .map((page) => page.replace(/\/+$/, ""))
        .flatMap((page) => [page, `${page}/**`]);
      return wordPressRules(
        preset,
        [...ofWordPress.parameters, ...parameters],
        [...pages, ...paths],
        [...ofWordPress.cookies, ...cookies],
      );
    }
    case "drupal":
      return [
        ...ofDrupal.paths.map(passed),
        ...ofDrupal.files.map(ofFiles),
        // Drupal names the lifetime of its pages.
        pages(preset, ofDrupal.cookies, preset.ttl_s),
      ];
    default:
      return preset.name satisfies never;
  }
}

function wordPressRules(
  preset: PresetInput,
  parameters: readonly string[],
  paths: readonly string[],
  cookies: readonly string[],
): readonly CacheRuleInput[] {
  return [
    { path: "/**", match: { query: parameters }, bypass: true },
    ...[...ofWordPress.paths, ...ofWordPress.scripts, ...paths].map(passed),
    ...ofWordPress.files.map(ofFiles),
    pages(preset, cookies, preset.ttl_s ?? pageTtlS),
  ];
}

const passed = (path: string): CacheRuleInput => ({ path, bypass: true });

const ofFiles = (path: string): CacheRuleInput => ({
  path,
  ttl_s: fileTtlS,
  cookies: { ignore: ["*"] },
  ...stale,
});

function pages(
  { cookies: more = {} }: PresetInput,
  cookies: readonly string[],
  ttlS: number | undefined,
): CacheRuleInput {
  const { bypass = [], vary = [] } = more;
  const said: CacheRuleInput["cookies"] = {
    bypass: [...new Set([...cookies, ...bypass])],
    ...(vary.length > 0 && { vary }),
    ignore: ["*"],
  };
  return {
    path: "/**",
    ...(ttlS !== undefined && { ttl_s: ttlS }),
    query: { ignore: campaigns },
    cookies: said,
    ...stale,
  };
}
