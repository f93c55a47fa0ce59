<?php
// Prints every cookie that reached PHP into each page, and in a field: a visitor who finds another's cookie in his page has found a leak.
add_action('send_headers', function () {
  header('X-Told-Cookies: ' . rawurlencode(implode(' ', array_keys($_COOKIE))));
});
add_action('wp_footer', function () {
  foreach ($_COOKIE as $name => $value)
    echo '<p class="canary">', esc_html("$name=$value"), "</p>\n";
});
// Visitors of a test comment faster than people.
add_filter('wp_is_comment_flood', '__return_false', 99);
