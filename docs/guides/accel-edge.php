<?php
/*
 * Plugin Name: accel edge
 * Description: Tells the accelerators what each page shows, and clears the pages that a change concerns.
 *
 * A page carries one tag for each post that it shows (`Cache-Tag: post-12,list`). A change clears by tags, and all at once when the request that changes
 * something has done its work. What may show anywhere (menus, the titles of pages, themes, settings, names) clears everything.
 *
 * wp-config.php says: ACCEL_API_URL, ACCEL_API_TOKEN and ACCEL_DOMAIN.
 */

if (!defined('ABSPATH')) exit;

final class Accel_Edge {
  private const KEPT = 'accel_edge_kept_';
  private const NOTHING = ['everything' => false, 'tags' => []];
  /** The seconds for which central may keep PHP, and a visitor, waiting. It answers in milliseconds, as soon as it has written the clear. */
  private const PATIENCE = 3;
  /** The seconds for which central is left alone after it said nothing. */
  private const PAUSE = 50;
  /** How often one request asks central for others that ended meanwhile. Those behind it take what is left along. */
  private const ROUNDS = 10;
  /** Settings of WordPress that pages show; the command line and other plugins change them without a page of settings. */
  private const SETTINGS = [
    'blogname', 'blogdescription', 'siteurl', 'home', 'WPLANG', 'timezone_string', 'gmt_offset', 'date_format', 'time_format', 'start_of_week',
    'blog_public', 'show_on_front', 'page_on_front', 'page_for_posts', 'posts_per_page', 'posts_per_rss', 'rss_use_excerpt', 'sticky_posts',
    'site_icon', 'site_logo', 'blog_charset', 'category_base', 'tag_base', 'permalink_structure', 'users_can_register', 'comment_registration',
    'require_name_email', 'close_comments_for_old_posts', 'close_comments_days_old', 'thread_comments', 'thread_comments_depth', 'page_comments',
    'comments_per_page', 'default_comments_page', 'comment_order', 'show_comments_cookies_opt_in', 'show_avatars', 'avatar_rating', 'avatar_default',
    'thumbnail_size_w', 'thumbnail_size_h', 'medium_size_w', 'medium_size_h', 'large_size_w', 'large_size_h', 'wp_page_for_privacy_policy',
  ];
  /** What the page that is being made shows. */
  private static array $shown = [];
  /** What the changes of this request concern. */
  private static array $changed = [];
  private static bool $everything = false;

  public static function start(): void {
    add_action('template_redirect', [self::class, 'watch_page'], 0);
    add_filter('the_posts', [self::class, 'see_posts']);
    add_action('pre_get_posts', [self::class, 'see_query']);
    add_action('pre_get_comments', static function ($query) {
      if (empty($query->query_vars['post_id'])) self::$shown['comments'] = true;
    });

    add_action('transition_post_status', [self::class, 'post_changed'], 10, 3);
    add_action('post_updated', [self::class, 'post_renamed'], 10, 3);
    add_action('before_delete_post', [self::class, 'post_deleted']);
    add_action('set_object_terms', [self::class, 'terms_changed'], 10, 6);
    add_action('delete_term_relationships', [self::class, 'terms_removed'], 10, 3);
    foreach (['added_post_meta', 'updated_post_meta', 'deleted_post_meta'] as $event) add_action($event, [self::class, 'meta_changed'], 10, 3);
    foreach (['added_option', 'updated_option', 'deleted_option'] as $event) add_action($event, [self::class, 'option_changed']);
    // A sale changes the stock without saving the product.
    foreach (['woocommerce_product_set_stock', 'woocommerce_variation_set_stock', 'woocommerce_product_set_stock_status'] as $event)
      add_action($event, static function ($product) {
        $id = is_object($product) ? ($product->get_parent_id() ?: $product->get_id()) : (int) $product;
        self::change("post-$id");
      });
    foreach (['wp_insert_comment', 'edit_comment', 'delete_comment', 'wp_set_comment_status'] as $event)
      add_action($event, static function ($id) {
        $comment = get_comment($id);
        // A shop writes its notes on orders as comments.
        if ($comment && is_post_publicly_viewable((int) $comment->comment_post_ID)) self::change("post-{$comment->comment_post_ID}", 'comments');
      });
    $anywhere = [
      'switch_theme', 'customize_save_after', 'wp_update_nav_menu', 'wp_delete_nav_menu', 'update_option_sidebars_widgets',
      'created_term', 'edited_term', 'delete_term', 'edit_attachment', 'delete_attachment',
      'activated_plugin', 'deactivated_plugin', 'upgrader_process_complete', 'permalink_structure_changed',
    ];
    foreach ($anywhere as $event) add_action($event, static fn () => self::$everything = true);
    foreach (['profile_update', 'delete_user'] as $event) add_action($event, [self::class, 'user_changed']);
    add_action('shutdown', [self::class, 'clear']);
  }

  /** Holds the page back until it is known what it shows: the tags stand in its head. */
  public static function watch_page(): void {
    ob_start(static function (string $page): string {
      if (!headers_sent() && self::$shown !== []) header('Cache-Tag: ' . implode(',', array_keys(self::$shown)));
      return $page;
    });
  }

  public static function see_posts(array $posts): array {
    if (!is_admin()) foreach ($posts as $post) self::$shown["post-{$post->ID}"] = true;
    return $posts;
  }

  /** Of some lists nobody is told what they found (`suppress_filters`), but that they are asked for. */
  public static function see_query(WP_Query $query): void {
    if (is_admin() || $query->is_singular()) return;
    // Its comments are found by WP_Query, of which no query for comments tells.
    if ($query->is_comment_feed()) self::$shown['comments'] = true;
    foreach ((array) ($query->get('post_type') ?: 'post') as $type)
      if (!str_starts_with($type, 'wp_') && $type !== 'nav_menu_item') self::$shown['list'] = true;
  }

  public static function post_changed(string $new, string $old, WP_Post $post): void {
    if ($new !== 'publish' && $old !== 'publish') return;
    if (wp_is_post_revision($post) || wp_is_post_autosave($post)) return;
    // Templates, navigation, styles and blocks of the site editor show anywhere.
    if (str_starts_with($post->post_type, 'wp_') || $post->post_type === 'nav_menu_item') self::$everything = true;
    self::change("post-{$post->ID}", ...self::neighbours($post));
    if ($new !== $old || $post->post_type !== 'page') self::change('list');
    if ($new !== $old && self::is_in_menus($post)) self::$everything = true;
  }

  public static function post_renamed(int $id, WP_Post $after, WP_Post $before): void {
    if ($after->post_status !== 'publish' || $before->post_status !== 'publish' || !self::is_in_menus($after)) return;
    foreach (['post_title', 'post_name', 'post_parent', 'menu_order', 'post_password'] as $field)
      if ($after->$field !== $before->$field) self::$everything = true;
  }

  public static function post_deleted(int $id): void {
    $post = get_post($id);
    if (!$post || $post->post_status !== 'publish') return;
    self::change("post-$id", 'list');
    if (self::is_in_menus($post)) self::$everything = true;
  }

  /** Code moves a post to another category without saving it. What was there before and is there again changes nothing. */
  public static function terms_changed(int $id, $terms, array $now, string $taxonomy, bool $append, array $before): void {
    $isSame = array_diff($now, $before) === [] && ($append || array_diff($before, $now) === []);
    if (!$isSame) self::terms_differ($id);
  }

  /** Is told before they are removed: some code removes what is not there. */
  public static function terms_removed(int $id, array $removed, string $taxonomy): void {
    $before = wp_get_object_terms($id, $taxonomy, ['fields' => 'tt_ids', 'orderby' => 'none', 'update_term_meta_cache' => false]);
    if (is_array($before) && array_intersect($removed, $before) !== []) self::terms_differ($id);
  }

  private static function terms_differ(int $id): void {
    $post = get_post($id);
    if ($post && $post->post_status === 'publish') self::change("post-$id", 'list', ...self::neighbours($post));
  }

  /** Code sets the featured image of a post without saving the post. No post is named when it is taken from all of them. */
  public static function meta_changed($rows, int $id, string $key): void {
    if ($key !== '_thumbnail_id') return;
    $post = $id === 0 ? null : get_post($id);
    if ($id === 0) self::$everything = true;
    elseif ($post) self::post_changed($post->post_status, $post->post_status, $post);
  }

  /** Menus and navigation blocks list pages by themselves, and other posts where somebody put them there. */
  private static function is_in_menus(WP_Post $post): bool {
    return is_post_type_hierarchical($post->post_type) || wp_get_associated_nav_menu_items($post->ID) !== [];
  }

  /** A setting may show anywhere: one that WordPress names, or that is saved by a page of settings. */
  public static function option_changed(string $name): void {
    if (str_starts_with($name, '_') || str_starts_with($name, self::KEPT) || $name === 'cron') return;
    if (($GLOBALS['pagenow'] ?? '') === 'options.php' || isset(get_registered_settings()[$name]) || in_array($name, self::SETTINGS, true))
      self::$everything = true;
  }

  /** The name of who writes may show anywhere. Customers and subscribers show where they have commented: one who registers or moves house clears nothing. */
  public static function user_changed(int $id): void {
    if (user_can($id, 'edit_posts') || count_user_posts($id, get_post_types(['public' => true])) > 0) {
      self::$everything = true;
      return;
    }
    foreach (get_comments(['user_id' => $id, 'status' => 'approve']) as $comment)
      self::change("post-{$comment->comment_post_ID}", 'comments');
  }

  /** The pages of the post before and of the one behind link to it. */
  private static function neighbours(WP_Post $post): array {
    if (is_post_type_hierarchical($post->post_type)) return [];
    $before = $GLOBALS['post'] ?? null;
    $GLOBALS['post'] = $post;
    $found = array_filter([get_adjacent_post(false, '', true), get_adjacent_post(false, '', false)]);
    $GLOBALS['post'] = $before;
    return array_map(static fn ($one) => "post-{$one->ID}", array_values($found));
  }

  private static function change(string ...$tags): void {
    foreach ($tags as $tag) self::$changed[$tag] = true;
  }

  /**
   * What could not be told is kept, and told with the next change, or a minute later by whatever makes WordPress run: a visitor whom no cache answers, an
   * open page of wp-admin, or cron. Each failure has a row of its own, so that requests which end at the same time do not lose each other's.
   *
   * One request asks central at a time, and so one at most waits for it when it says nothing. What ends meanwhile is kept, and that request tells it next.
   */
  public static function clear(): void {
    if (wp_installing()) return;
    $new = ['everything' => self::$everything, 'tags' => array_keys(self::$changed)];
    self::$changed = [];
    self::$everything = false;
    $kept = self::kept();
    // Cron calls once a minute, and not to the second.
    $isDue = $kept !== [] && time() - max(array_column($kept, 'tried')) >= self::PAUSE;
    if ($new === self::NOTHING && !$isDue) return;
    if (!self::begin_to_ask()) {
      self::keep($new, time(), false);
      $new = self::NOTHING;
      // Whoever asks looks again afterwards. If nobody asks any more, he may have looked before this was kept.
      if (!self::begin_to_ask()) return;
    }
    for ($rounds = 1; ; $rounds++) {
      $isTold = self::tell_with_kept($new);
      $new = self::NOTHING;
      self::end_to_ask();
      if (!$isTold || $rounds === self::ROUNDS || self::kept() === [] || !self::begin_to_ask()) return;
    }
  }

  /** Tells of what is new and of what was kept, or keeps both. Says whether it is told. */
  private static function tell_with_kept(array $new): bool {
    $now = time();
    $kept = self::kept();
    // One request found out that central says nothing. Those behind it do not wait for the same.
    foreach ($kept as ['silent' => $silent, 'tried' => $tried])
      if ($silent && $now - $tried < self::PAUSE) {
        self::keep($new, $tried, true);
        return false;
      }
    $everything = $new['everything'] || in_array(true, array_column($kept, 'everything'), true);
    $tags = array_values(array_unique(array_merge($new['tags'], ...array_column($kept, 'tags'))));
    if ($new === self::NOTHING && $kept === []) return true;
    $problem = self::tell($everything || count($tags) > 500 ? ['everything' => true] : ['tags' => $tags]);
    if ($problem !== null) {
      error_log("accel edge: pages are not cleared yet: $problem");
      self::keep(['everything' => $everything, 'tags' => $tags], $now, time() - $now >= self::PATIENCE - 1);
    }
    foreach (array_keys($kept) as $name) delete_option($name);
    return $problem === null;
  }

  /**
   * False while another request asks. The lock is the database connection's: it ends with a request that is killed. Where the database has no such locks,
   * each request asks for itself.
   */
  private static function begin_to_ask(): bool {
    return self::ask_database('SELECT GET_LOCK(%s, 0)') !== '0';
  }

  private static function end_to_ask(): void {
    self::ask_database('SELECT RELEASE_LOCK(%s)');
  }

  private static function ask_database(string $query): ?string {
    global $wpdb;
    $wasQuiet = $wpdb->suppress_errors();
    $answer = $wpdb->get_var($wpdb->prepare($query, 'accel_edge_' . md5(DB_NAME . $wpdb->options)));
    $wpdb->suppress_errors($wasQuiet);
    return $answer;
  }

  /** `silent`: central did not refuse, it said nothing. */
  private static function keep(array $what, int $tried, bool $silent): void {
    if ($what === self::NOTHING) return;
    add_option(self::KEPT . uniqid('', true), $what + ['tried' => $tried, 'silent' => $silent], '', 'no');
  }

  /** Asks the database and no cache: another request may have written a moment ago. */
  private static function kept(): array {
    global $wpdb;
    $names = $wpdb->esc_like(self::KEPT) . '%';
    $rows = $wpdb->get_results($wpdb->prepare("SELECT option_name, option_value FROM $wpdb->options WHERE option_name LIKE %s", $names));
    $kept = array_map('maybe_unserialize', array_column($rows ?: [], 'option_value', 'option_name'));
    return array_map(static fn ($one) => $one + ['silent' => false], $kept);
  }

  /** Asks central to write the clear, and not to wait (`wait=0`) until every accelerator has told of it. Returns what went wrong, if anything did. */
  private static function tell(array $what): ?string {
    $answer = wp_remote_post(ACCEL_API_URL . '/presentation-api/v1/clear-accelerator-cache/' . ACCEL_DOMAIN . '/?wait=0', [
      'timeout' => self::PATIENCE,
      'headers' => ['Authorization' => 'Token ' . ACCEL_API_TOKEN, 'Content-Type' => 'application/json'],
      'body' => wp_json_encode($what),
    ]);
    if (is_wp_error($answer)) return $answer->get_error_message();
    $status = wp_remote_retrieve_response_code($answer);
    return $status < 400 ? null : "$status " . wp_remote_retrieve_body($answer);
  }
}

if (defined('ACCEL_API_URL')) Accel_Edge::start();
