// An origin that answers as WordPress does (6.2; wp_get_nocache_headers): nothing is said of how long a page lasts, whoever gets it, but to those who are
// logged in, who are told `no-cache`. Who has commented finds his name in the form, in a page of which nothing is said either.

import type { IncomingMessage, ServerResponse } from "node:http";

/** WordPress names its cookies with a digest of the site's URL. */
const siteHash = "37d007a56d816107ce5b52c10342db37";
export const loginCookie = `wordpress_logged_in_${siteHash}`;
const authorCookie = `comment_author_${siteHash}`;

/** As a browser would send it. */
export const cookieOf = {
  user: (name: string) => `wordpress_test_cookie=WP%20Cookie%20check; ${loginCookie}=${name}%7C1`,
  commenter: (name: string) => `${authorCookie}=${name}`,
} as const;

const nocache = {
  Expires: "Wed, 11 Jan 1984 05:00:00 GMT",
  "Cache-Control": "no-cache, must-revalidate, max-age=0",
} as const;

export function answerAsWordPress(request: IncomingMessage, response: ServerResponse): void {
  const cookies = new Map(
    (request.headers.cookie ?? "").split("; ").map((pair): [string, string] => {
      const equals = pair.indexOf("=");
      return [pair.slice(0, equals), decodeURIComponent(pair.slice(equals + 1))];
    }),
  );
  const user = cookies.get(loginCookie)?.split("|", 1)[0];
  const html = { "Content-Type": "text/html; charset=UTF-8", Link: '</wp-json/>; rel="api"' };
  if (request.url === "/wp-login.php" && request.method === "POST") {
    const set = [
      "wordpress_test_cookie=WP%20Cookie%20check; path=/",
      `${loginCookie}=alice%7C1; path=/; HttpOnly`,
    ];
    response.writeHead(302, { ...nocache, "Set-Cookie": set, Location: "/wp-admin/" }).end();
  } else if (user !== undefined)
    response.writeHead(200, { ...html, ...nocache }).end(`Howdy, ${user}`);
  else {
    const author = cookies.get(authorCookie);
    const form = author === undefined ? "" : `, comment as ${author}`;
    response.writeHead(200, html).end(`Hello, visitor${form}`);
  }
}
