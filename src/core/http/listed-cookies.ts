// The published list: cookies of analytics, advertising and consent that scripts in browsers set for themselves, which are always ignored.
//
// A cookie is on it when its vendor documents the name and the vendor's own script in the browser is what reads it; no page is made of it. A name that
// is only nearly such a one is not: Rails calls its sessions `_<application>_session`, so that `_ga_` and `_pk_` may begin the name of a login. That is
// why what varies in a name has a kind and is no wildcard. Not on the list are consents that their vendors show servers how to read (Cookiebot's
// `CookieConsent`, `cookielawinfo-*`, Complianz, Borlabs, iubenda), what names a signed-in user (`ajs_user_id`), and experiments (`_gaexp`, `mbox`).

export type ListedCookies = {
  /** The product that sets the cookies. */
  readonly of: string;
  /** The names, with `<ID>`, `<hex>`, `<number>` and `<Name>` for the parts that vary. */
  readonly names: readonly string[];
};

export const LISTED_COOKIES: readonly ListedCookies[] = [
  {
    of: "Google Analytics, Tag Manager",
    names: ["_ga", "_ga_<ID>", "_gid", "_gat", "_gat_<ID>", "_gat_gtag_<ID>", "_gali", "_dc_gtm_<ID>"],
  },
  { of: "Google Analytics before 2016", names: ["__utma", "__utmb", "__utmc", "__utmt", "__utmt_<ID>", "__utmv", "__utmz"] },
  {
    of: "Google Ads",
    names: [
      "_gac_<ID>", "_gac_gb_<ID>", "_gcl_ag", "_gcl_au", "_gcl_aw", "_gcl_dc", "_gcl_gb", "_gcl_gf", "_gcl_gs", "_gcl_ha",
      "__gads", "__gpi", "__gpi_optout",
    ],
  },
  { of: "Meta", names: ["_fbc", "_fbp"] },
  { of: "Microsoft Clarity", names: ["_clck", "_clsk"] },
  { of: "Microsoft Advertising", names: ["_uetmsclkid", "_uetsid", "_uetvid"] },
  { of: "Hotjar", names: ["_hjid", "_hjptid", "_hj<Name>", "_hj<Name>_<number>"] },
  {
    of: "Matomo",
    names: [
      "_pk_cvar.<number>.<hex>", "_pk_hsr.<number>.<hex>", "_pk_id.<number>.<hex>", "_pk_ref.<number>.<hex>", "_pk_ses.<number>.<hex>",
      "mtm_consent", "mtm_consent_removed", "mtm_cookie_consent",
    ],
  },
  { of: "HubSpot", names: ["__hssc", "__hssrc", "__hstc", "hubspotutk"] },
  { of: "Segment", names: ["ajs_anonymous_id"] },
  { of: "Amplitude", names: ["AMP_<hex>", "AMP_MKTG_<hex>", "amplitude_id_<hex>"] },
  { of: "Mixpanel", names: ["mp_<hex>_mixpanel"] },
  { of: "Yandex Metrica", names: ["_ym_d", "_ym_isad", "_ym_uid", "_ym_visorc", "_ym_visorc_<number>"] },
  { of: "TikTok", names: ["_tt_enable_cookie", "_ttp"] },
  { of: "OneTrust", names: ["OptanonAlertBoxClosed", "OptanonConsent"] },
  { of: "Didomi", names: ["didomi_dcs", "didomi_token"] },
  { of: "IAB Europe (TCF)", names: ["euconsent-v2"] },
  { of: "CookieYes", names: ["cookieyes-consent"] },
  { of: "tarteaucitron", names: ["tarteaucitron"] },
]; // prettier-ignore

/**
 * The patterns of the parts that vary. Each is a run of at least one of its characters, so that a name is
 * tried in one pass.
 */
export const NAME_PARTS = {
  /** Capitals, digits, `-` and `_`: property, container and conversion ids. */
  ID: "[A-Z0-9_-]+",
  hex: "[0-9a-f]+",
  number: "[0-9]+",
  /** Begins with a capital; letters. */
  Name: "[A-Z][A-Za-z]*",
} as const;

function isNamePart(text: string): text is keyof typeof NAME_PARTS {
  return Object.hasOwn(NAME_PARTS, text);
}

function expressionOf(name: string): string {
  return name
    .split(/<(\w+)>/)
    .map((part) => (isNamePart(part) ? NAME_PARTS[part] : part.replaceAll(".", String.raw`\.`)))
    .join("");
}

const all = LISTED_COOKIES.flatMap(({ names }) => names);
const fixed: ReadonlySet<string> = new Set(all.filter((name) => !name.includes("<")));
const varying = new RegExp(
  `^(?:${all
    .filter((name) => name.includes("<"))
    .map(expressionOf)
    .join("|")})$`,
);

export function isListedCookie(name: string): boolean {
  return fixed.has(name) || varying.test(name);
}
