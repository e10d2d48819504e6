//! Pictures of products.

use std::io::Cursor;

use axum::body::Body;
use axum::http::{Request, header};
use image::{DynamicImage, ImageFormat};
use serde_json::json;
use vat_classification::http::BASE_PATH;

use crate::app::{Answer, App};

pub(crate) fn picture(format: ImageFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    DynamicImage::new_rgb8(3, 2).write_to(&mut Cursor::new(&mut bytes), format).expect("a picture");
    bytes
}

async fn send(app: &App, method: &str, path: &str, part: &str, bytes: &[u8]) -> Answer {
    let mut body = format!(
        "--X\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"../../etc/passwd\"\r\n\
         Content-Type: image/png\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(bytes);
    body.extend_from_slice(b"\r\n--X--\r\n");
    app.raw(&app.token, method, path, "multipart/form-data; boundary=X", Body::from(body)).await
}

#[tokio::test]
async fn a_picture_is_uploaded_replaced_read_and_gone_with_its_product() {
    for list in ["/products/global", "/shops/7/products/local"] {
        let app = App::start().await;
        app.post(list, json!({"p": {"productDetails": {}}})).await.expect(201);
        let path = format!("{list}/product-picture?productId=p");
        let png = picture(ImageFormat::Png);
        send(&app, "PUT", &path, "file", &png).await.expect(404);
        app.get(&path).await.expect(404);
        let made = send(&app, "POST", &path, "file", &png).await.expect(201).body;
        assert_eq!(
            (&made["contentType"], &made["width"], &made["height"]),
            (&json!("image/png"), &json!(3), &json!(2))
        );
        send(&app, "POST", &path, "file", &png).await.expect(409);
        let replaced = send(&app, "PUT", &path, "file", &picture(ImageFormat::Gif)).await.expect(200).body;
        assert_eq!(replaced["contentType"], "image/gif");
        let shown = app.get(&format!("{list}/p?detail=Small")).await.expect(200).body["picture"].clone();
        let mut expected = replaced.clone();
        expected.as_object_mut().expect("a picture").remove("productId");
        assert_eq!(shown, expected);
        let read = app.get(replaced["url"].as_str().expect("a URL")).await.expect(200);
        assert_eq!(read.bytes.len() as i64, replaced["size"].as_i64().expect("a size"));
        assert_eq!(read.headers["content-type"], "image/gif");
        assert_eq!(read.headers["x-content-type-options"], "nosniff");
        let etag = read.headers["etag"].to_str().expect("a tag");
        for (sent, status) in [
            (etag.to_owned(), 304),
            (format!("\"x\", W/{etag}"), 304),
            ("*".to_owned(), 304),
            ("\"x\"".to_owned(), 200),
        ] {
            let known = Request::get(format!("{BASE_PATH}{path}"))
                .header(header::AUTHORIZATION, format!("Bearer {}", app.token))
                .header(header::IF_NONE_MATCH, sent)
                .body(Body::empty())
                .expect("a request");
            app.send(known).await.expect(status);
        }
        assert_eq!(app.get(&format!("{list}/p")).await.body["version"], 1, "pictures do not touch the version");
        let put =
            |keep: bool, version: i64| format!("{list}?productId=p&currentVersion={version}&preserveFiles={keep}");
        app.put(&put(true, 1), json!({"productDetails": {}})).await.expect(200);
        app.get(&path).await.expect(200);
        app.put(&put(false, 2), json!({"productDetails": {}})).await.expect(200);
        app.get(&path).await.expect(404);
        assert_eq!(app.get(&format!("{list}/p")).await.body.get("picture"), None);
    }
}

#[tokio::test]
async fn what_is_no_picture_is_refused() {
    let app = App::start().await;
    app.create(&[("p", "x")]).await;
    let path = "/products/global/product-picture?productId=p";
    let png = picture(ImageFormat::Png);
    send(&app, "POST", path, "file", b"%PDF-1.7").await.expect(415);
    send(&app, "POST", path, "file", &png[..40]).await.expect(422);
    send(&app, "POST", path, "photo", &png).await.expect(400);
    let mut large = png.clone();
    large.resize((10 << 20) + 1, 0);
    send(&app, "POST", path, "file", &large).await.expect(413);
    app.call("POST", path, json!({})).await.expect(415);
    send(&app, "POST", "/products/global/product-picture?productId=none", "file", &png).await.expect(404);
    send(&app, "POST", "/products/global/product-picture", "file", &png).await.expect(400);
    app.get(path).await.expect(404);
}

#[tokio::test]
async fn a_picture_is_taken_away_without_touching_the_product() {
    for list in ["/products/global", "/shops/7/products/local"] {
        let app = App::start().await;
        app.post(list, json!({"p": {"productDetails": {}}})).await.expect(201);
        let path = format!("{list}/product-picture?productId=p");
        app.delete(&path).await.expect(404);
        app.delete(&format!("{list}/product-picture?productId=none")).await.expect(404);
        send(&app, "POST", &path, "file", &picture(ImageFormat::Png)).await.expect(201);
        let record = app.get(&format!("{list}/p")).await.expect(200).body;
        assert_eq!(record["picture"]["contentType"], "image/png");
        // What was read can be sent back, its picture included.
        app.put(&format!("{list}?productId=p&currentVersion=1"), record).await.expect(200);
        app.delete(&path).await.expect(204);
        app.delete(&path).await.expect(404);
        app.get(&path).await.expect(404);
        let record = app.get(&format!("{list}/p")).await.expect(200).body;
        assert_eq!((record.get("picture"), &record["version"]), (None, &json!(2)));
        send(&app, "POST", &path, "file", &picture(ImageFormat::Png)).await.expect(201);
    }
}

#[tokio::test]
async fn pictures_whose_disk_is_away_are_told_to_come_again_and_keep_nothing_else() {
    let app = App::start().await;
    app.post("/products/global", json!({"p": {"productDetails": {}}, "q": {"productDetails": {}}})).await.expect(201);
    let path = |id: &str| format!("/products/global/product-picture?productId={id}");
    let png = picture(ImageFormat::Png);
    send(&app, "POST", &path("p"), "file", &png).await.expect(201);
    let away = app.pictures().with_file_name("away");
    // A disk that is not mounted leaves an empty directory, one that fails nothing that can be read at all.
    for empty in [true, false] {
        std::fs::rename(app.pictures(), &away).expect("taken away");
        match empty {
            true => std::fs::create_dir(app.pictures()).expect("a directory"),
            false => std::fs::write(app.pictures(), "").expect("a file"),
        }
        for answer in [send(&app, "POST", &path("q"), "file", &png).await, app.get(&path("p")).await] {
            let refused = answer.expect(503);
            assert_eq!(refused.body["code"], "ServiceUnavailable", "{empty}");
            assert!(refused.headers.contains_key("retry-after"), "{empty}");
        }
        app.get(&path("q")).await.expect(404);
        app.create(&[("meanwhile", "Tee")]).await;
        app.delete("/products/global?productId=meanwhile&currentVersion=1").await.expect(204);
        match empty {
            true => std::fs::remove_dir(app.pictures()).expect("nothing was written there"),
            false => std::fs::remove_file(app.pictures()).expect("a file"),
        }
        std::fs::rename(&away, app.pictures()).expect("back");
        app.get(&path("p")).await.expect(200);
    }
    send(&app, "POST", &path("q"), "file", &png).await.expect(201);
}
