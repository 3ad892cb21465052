// Certificates for tests, made by OpenSSL: an authority and what it signs, as PEM files.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <string>

namespace vivace::server::testing {

class TestCertificate {
 public:
  // Signed by `issuer`, or by itself. Files NAME.crt and NAME.key in the tests' folder.
  explicit TestCertificate(const std::string& name, const TestCertificate* issuer = nullptr)
      : certificate_file_(::testing::TempDir() + name + ".crt"),
        key_file_(::testing::TempDir() + name + ".key"),
        key_(EVP_EC_gen("P-256")),
        certificate_(X509_new()) {
    static long serial = 1;
    X509_set_version(certificate_, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate_), serial++);
    X509_gmtime_adj(X509_getm_notBefore(certificate_), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate_), 3600);
    X509_set_pubkey(certificate_, key_);
    X509_NAME* subject = X509_get_subject_name(certificate_);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(certificate_,
                         issuer != nullptr ? X509_get_subject_name(issuer->certificate_) : subject);
    AddExtension(NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
    X509_sign(certificate_, issuer != nullptr ? issuer->key_ : key_, EVP_sha256());
    FILE* file = std::fopen(certificate_file_.c_str(), "w");
    PEM_write_X509(file, certificate_);
    std::fclose(file);
    file = std::fopen(key_file_.c_str(), "w");
    PEM_write_PrivateKey(file, key_, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }
  ~TestCertificate() {
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  const std::string& certificate_file() const { return certificate_file_; }
  const std::string& key_file() const { return key_file_; }
  X509* certificate() const { return certificate_; }
  EVP_PKEY* key() const { return key_; }

 private:
  void AddExtension(int nid, const char* value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
    X509_add_ext(certificate_, extension, -1);
    X509_EXTENSION_free(extension);
  }

  const std::string certificate_file_;
  const std::string key_file_;
  EVP_PKEY* const key_;
  X509* const certificate_;
};

}  // namespace vivace::server::testing
