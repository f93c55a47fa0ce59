// The published list: names as they come in real requests are on it, names of logins that are only like them are not, and the document says the same.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isListedCookie, LISTED_COOKIES } from "../../../src/core/http/listed-cookies.ts";

/** As browsers send them. */
const met = [
  ..."_ga _ga_S7XDPVY02T _ga_GTM-P67487F _gid _gat _gat_UA-12345-1 _gat_gtag_UA_12345_1 _gali _dc_gtm_UA-5-1".split(" "),
  ..."__utma __utmb __utmc __utmt __utmt_UA-1-1 __utmv __utmz _gac_UA-1-1 _gac_gb_G-1ABC _gcl_au _gcl_aw __gads __gpi".split(" "),
  ..."_fbp _fbc _clck _clsk _uetsid _uetvid _hjid _hjFirstSeen _hjSession_812170 _hjSessionUser_812170 _hjTLDTest".split(" "),
  ..."_pk_cvar.1.1fff _pk_hsr.1.1fff amplitude_id_8cc66ffd0f _hjIncludedInPageviewSample _hjAbsoluteSessionInProgress _pk_id.1.1fff _pk_ses.3.46b0 _pk_ref.12.abcd mtm_consent".split(" "),
  ..."__hstc __hssc __hssrc hubspotutk ajs_anonymous_id AMP_8cc66ffd0f AMP_MKTG_8cc66ffd0f mp_de68fb7561d61e2fa21b5d584e246ede_mixpanel".split(" "),
  ..."_ym_uid _ym_d _ym_isad _ym_visorc _ym_visorc_21378790 _ttp _tt_enable_cookie OptanonConsent OptanonAlertBoxClosed".split(" "),
  ..."didomi_token euconsent-v2 cookieyes-consent tarteaucitron".split(" "),
]; // prettier-ignore

/** What an application calls its own, or a server is told to read. */
const own = [
  ..."PHPSESSID JSESSIONID ASP.NET_SessionId sid session sessionid connect.sid laravel_session csrftoken remember_me jwt".split(" "),
  ..."wordpress_logged_in_37d007a56d816107ce5b52c10342db37 wp-settings-1 woocommerce_items_in_cart SESS1234 auth_token cart".split(" "),
  ..."_ga_session _garden_session _game_session _gat_session _gallery_id _gid_session _pk_session _pk_ses _pk_id _hj_session".split(" "),
  ..."_hjelp_session _fbp_session _gcl_session _ym_session _tt_session mp_session mp_user_mixpanel amp_session AMP_TOKEN AMP_SESSION".split(" "),
  ..."amplitude_session ajs_user_id _clck2 x_ga _GA mtm_session didomi_session __utm_session __gads_session _ga_ _hj".split(" "),
  ..."CookieConsent cookielawinfo-checkbox-analytics viewed_cookie_policy cmplz_marketing borlabs-cookie _iub_cs-1 mbox _gaexp".split(" "),
  "", " _ga", "_ga ", "_pk_idx1x1fff", "_pk_id.1.1fff.session", "__proto__", "constructor",
]; // prettier-ignore

test.each(met)("%s is on it", (name) => {
  expect(isListedCookie(name)).toBe(true);
});

test.each(own)("%j is not", (name) => {
  expect(isListedCookie(name)).toBe(false);
});

test("each name is on it once, and each that varies is met above", () => {
  const names = LISTED_COOKIES.flatMap((row) => row.names);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) {
    const [start = ""] = name.split("<", 1);
    if (start === name) expect(isListedCookie(name)).toBe(true);
    else expect([name, met.some((one) => one.startsWith(start))]).toEqual([name, true]);
  }
});

test("docs/caching.md publishes it as it is", () => {
  const text = readFileSync(join(import.meta.dirname, "../../../docs/caching.md"), "utf8");
  const table = /<!-- cookies -->\n([^]*?)<!-- \/cookies -->/.exec(text)?.[1];
  const rows = LISTED_COOKIES.map(
    ({ of, names }) => `| ${of} | ${names.map((name) => `\`${name}\``).join(", ")} |\n`,
  );
  expect(table).toBe(`| Of | Names |\n|---|---|\n${rows.join("")}`);
});
